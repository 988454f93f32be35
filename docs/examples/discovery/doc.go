// Package discovery has two programs with gRPC that find each other: server registers, and client
// calls whoever is registered. Start several of each:
//
//	go run ./server -servers localhost:2181
//	go run ./client -servers localhost:2181
//
// SIGTERM ends them. The client loses no call when a server ends so.
package discovery
