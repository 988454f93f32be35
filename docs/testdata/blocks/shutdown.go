package page

import "github.com/docent-go/docent/recipes/cache"

var tree *cache.Tree[string]
