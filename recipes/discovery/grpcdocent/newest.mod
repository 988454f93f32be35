module github.com/docent-go/docent/recipes/discovery/grpcdocent

go 1.25.0

replace github.com/docent-go/docent => ../../..

require (
	github.com/docent-go/docent v0.0.0-00010101000000-000000000000
	google.golang.org/grpc v1.84.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260706201446-f0a921348800 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
