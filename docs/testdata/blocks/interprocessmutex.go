package page

import "context"

var waiting context.Context
