package lease_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
)

// workerEnv makes the test binary a worker process; its value is a task.
const workerEnv = "DOCENT_LEASE_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		os.Exit(work(text))
	}
	flag.Parse()
	// Tests wait for sessions to end, not for a processor.
	if err := flag.Set("test.parallel", "3"); err != nil {
		fmt.Fprintln(os.Stderr, "lease:", err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

func work(text string) int {
	var tk task
	err := json.Unmarshal([]byte(text), &tk)
	if err == nil {
		err = tk.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lease: worker:", err)
		return 2
	}
	return 0
}
