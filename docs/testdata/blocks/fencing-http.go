package page

import (
	"io"
	"net/http"

	"github.com/docent-go/docent/fence"
)

var (
	shop    fence.Database
	body    io.Reader
	handler http.Handler
)
