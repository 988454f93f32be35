package page

import (
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
)

type Service struct {
	Orders *recipes.InterProcessMutex
	Stock  *recipes.InterProcessReadWriteLock
}

var tree *cache.Tree[string]
