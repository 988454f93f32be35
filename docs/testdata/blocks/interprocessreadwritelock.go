package page

import "github.com/docent-go/docent/recipes"

var (
	read  *recipes.Hold
	write *recipes.WriteHold
)
