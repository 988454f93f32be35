package page

import "github.com/docent-go/docent/recipes"

var (
	orders  *recipes.InterProcessMutex
	stock   *recipes.InterProcessReadWriteLock
	pool    *recipes.InterProcessSemaphoreV2
	path    string
	data    []byte
	version int32
)
