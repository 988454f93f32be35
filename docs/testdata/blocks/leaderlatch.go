package page

import "context"

func schedule(context.Context, int64) error

var told context.Context

func begin(context.Context) (end func() error)
