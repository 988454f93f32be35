package exclusion_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// workerEnv makes the test binary a worker process; its value is a task.
const workerEnv = "DOCENT_EXCLUSION_WORKER"

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		os.Exit(work(text))
	}
	os.Exit(m.Run())
}

// work is a worker process from start to end. Its only output is the outcome.
func work(text string) int {
	var tk task
	if err := json.Unmarshal([]byte(text), &tk); err != nil {
		fmt.Fprintln(os.Stderr, "exclusion: worker:", err)
		return 2
	}
	if err := json.NewEncoder(os.Stdout).Encode(run(context.Background(), tk)); err != nil {
		fmt.Fprintln(os.Stderr, "exclusion: worker:", err)
		return 2
	}
	return 0
}
