// Package page declares what blocks of code on every page may take for given.
package page

import (
	"context"
	"database/sql"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

var (
	ctx  context.Context
	err  error
	c    *client.Client
	db   *sql.DB
	lock *recipes.InterProcessMutex
	hold *recipes.Hold
)

// work is the reader's own.
func work(context.Context, ...any) error
