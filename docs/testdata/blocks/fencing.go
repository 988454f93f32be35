package page

import (
	"context"
	"database/sql"

	"github.com/docent-go/docent/fence"
)

func readStock(context.Context, *sql.DB) (int, error)
func pay(context.Context) error
