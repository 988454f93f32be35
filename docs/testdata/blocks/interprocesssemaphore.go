package page

import "github.com/docent-go/docent/recipes/shared"

var size *shared.SharedCount
