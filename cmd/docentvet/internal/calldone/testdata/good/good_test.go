package good

import (
	"testing"

	"github.com/docent-go/docent/recipes/discovery"
)

func TestPick(t *testing.T) {
	var orders *discovery.ServiceProvider
	if _, err := orders.Pick(t.Context()); err != nil {
		t.Error(err)
	}
}
