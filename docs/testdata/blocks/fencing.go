package page

import (
	"context"
	"database/sql"
	"io"
	"net/http"

	"github.com/docent-go/docent/fence"
)

var (
	bank    fence.Database
	body    io.Reader
	handler http.Handler
)

func readStock(context.Context, *sql.DB) (int, error)
func pay(context.Context) error
