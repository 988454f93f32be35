package page

import "context"

func schedule(context.Context, int64) error
