package page

import "log"

var say *log.Logger
