package zkcontainer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// lines is a consumer of the log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Accept(part testcontainers.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.text.Write(part.Content)
}

// count counts the lines that say that a server has answered a word.
func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), "Processing isro command")
}

// What the caller lets consume the log gets it until the server ends, and again after it has come
// back. The contexts of the start and of the calls bound those alone.
func TestLogConsumer(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 2*time.Minute)
	consumer := new(lines)
	start, cancel := context.WithCancel(ctx)
	c, err := zkcontainer.Run(start, image(), zkcontainer.WithHost("127.0.0.1"), testcontainers.WithLogConsumers(consumer))
	testcontainers.CleanupContainer(t, c)
	check(t, err)
	cancel()
	heard := func() {
		t.Helper()
		before := consumer.count()
		must(zkcontainer.Await(limited(t, 30*time.Second), func(ctx context.Context) (int, error) {
			_, err := c.FourLetter(ctx, "isro")
			if now := consumer.count(); err == nil && now > before {
				return now, nil
			}
			return 0, errors.Join(err, errors.New("the consumer hears nothing"))
		}))(t)
	}
	heard()
	check(t, c.Kill(ctx))
	start, cancel = context.WithCancel(ctx)
	check(t, c.Start(start))
	cancel()
	heard()
}
