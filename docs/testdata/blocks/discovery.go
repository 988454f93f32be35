package page

import "context"

func send(ctx context.Context, address string) error
