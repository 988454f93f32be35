package client_test

import (
	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// inner is what the package does for recipes alone.
var inner = inside.Of[client.Client, client.Session, client.Op]()

// newNode is a node to be made.
type newNode = inside.Node[client.Client]
