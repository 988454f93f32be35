package page

import (
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

var (
	srv   *zktest.Server
	first *recipes.Hold
)
