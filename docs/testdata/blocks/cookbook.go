package page

import (
	"context"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

const donePath = "/jobs/report/done"

type job struct {
	c    *client.Client
	lock *recipes.InterProcessMutex
	work func(ctx context.Context, token int64, night string) (report []byte, err error)
}

type service struct {
	lock  *recipes.InterProcessMutex
	jobs  <-chan func(ctx context.Context, token int64) error
	grace time.Duration
}
