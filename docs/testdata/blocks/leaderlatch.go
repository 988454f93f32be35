package page

import (
	"context"

	"github.com/docent-go/docent/recipes"
)

var term *recipes.Term

func schedule(context.Context, int64) error

func begin(context.Context) (end func() error)
