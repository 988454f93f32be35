module github.com/docent-go/docent/docs/examples/discovery

go 1.25.0

replace github.com/docent-go/docent => ../../..

replace github.com/docent-go/docent/recipes/discovery/grpcdocent => ../../../recipes/discovery/grpcdocent

require (
	github.com/docent-go/docent v0.0.0-00010101000000-000000000000
	github.com/docent-go/docent/recipes/discovery/grpcdocent v0.0.0-00010101000000-000000000000
	google.golang.org/grpc v1.63.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	golang.org/x/net v0.21.0 // indirect
	golang.org/x/sys v0.17.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240227224415-6ceb2ff114de // indirect
	google.golang.org/protobuf v1.33.0 // indirect
)
