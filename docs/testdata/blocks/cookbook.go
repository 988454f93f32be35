package page

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

const (
	lockPath, donePath = "/jobs/report/lock", "/jobs/report/done"
	top                = "/config/shop"
	group              = "/fleet/workers"
	block              = 10
)

type job struct {
	c    *client.Client
	lock *recipes.InterProcessMutex
	work func(ctx context.Context, token int64, night string) (report []byte, err error)
}

type scheduler struct {
	latch *recipes.LeaderLatch
	id    string
	out   io.Writer
}

type setting struct {
	Limit int
	On    bool
}

type limiter struct {
	permits *recipes.InterProcessSemaphoreV2
	window  time.Duration
	kept    sync.WaitGroup
}
