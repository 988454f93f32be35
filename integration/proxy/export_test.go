package proxy

// For fuzzing.
var (
	ParseRequest   = parseRequest
	ParseConnect   = parseConnect
	ParseConnected = parseConnected
	ParseReply     = parseReply
	MadePath       = madePath
)
