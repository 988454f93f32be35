package discovery

import (
	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// inner is what package client does for recipes alone.
var inner = inside.Of[client.Client, client.Session, client.Op]() //nolint:gochecknoglobals // functions of another package
