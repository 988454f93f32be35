package page

import (
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func connect(*testing.T, *zktest.Server, string) *client.Client
func acquire(*testing.T, *client.Client, string) *recipes.Hold
