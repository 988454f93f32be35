package page

var servers string
