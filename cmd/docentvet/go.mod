module github.com/docent-go/docent/cmd/docentvet

go 1.25.0

replace github.com/docent-go/docent => ../..

require (
	github.com/docent-go/docent v0.0.0-00010101000000-000000000000
	github.com/go-zookeeper/zk v1.0.4
	golang.org/x/tools v0.49.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
