package page

import "github.com/docent-go/docent/recipes"

var accounts, orders *recipes.InterProcessMutex
