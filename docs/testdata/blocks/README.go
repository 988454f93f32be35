package page

import "context"

func sellOne(context.Context, int64) error
