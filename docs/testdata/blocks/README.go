package page

import (
	"context"
	"database/sql"
)

func sellOne(context.Context, *sql.DB, int64) error
