package page

import "github.com/docent-go/docent/recipes"

type Service struct {
	Orders *recipes.InterProcessMutex
	Stock  *recipes.InterProcessReadWriteLock
}
