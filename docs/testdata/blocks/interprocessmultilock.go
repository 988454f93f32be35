package page

import (
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
)

var (
	shop    fence.Database
	orders  *recipes.InterProcessMutex
	stock   *recipes.InterProcessReadWriteLock
	pool    *recipes.InterProcessSemaphoreV2
	path    string
	data    []byte
	version int32
)
