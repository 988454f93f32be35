// Package grpcdocent lets gRPC clients find the instances of a service in ZooKeeper. It is a module
// of its own, so that only programs with gRPC depend on gRPC.
//
//	builder, err := grpcdocent.NewBuilder(d) // d is a *discovery.ServiceDiscovery
//	if err != nil {
//		return err
//	}
//	defer builder.Close()
//	conn, err := grpc.NewClient("zk:///orders",
//		grpc.WithResolvers(builder),
//		grpc.WithTransportCredentials(creds))
//
// Where to go on:
//
//   - What a server does: ServiceDiscovery.Register of package discovery, when it is ready.
//   - Which instance a policy of yours has: [InstanceOf].
//   - Without [google.golang.org/grpc.WithResolvers] gRPC takes the scheme zk for a name of DNS, and
//     calls fail late.
//
// # What calls see
//
// A client connects to all instances and gives them calls in turn: the policy is round_robin,
// unless [WithServiceConfig] or [WithoutServiceConfig] says otherwise.
//
//	ZooKeeper                        the client
//	has not yet been read            waits: calls wait until their contexts end
//	cannot be reached at the start   fails calls that do not wait for ready, with the cause
//	is lost later                    keeps all instances
//	has an instance more or less     uses it, or lets it finish its calls
//	has no instance of the service   fails calls with Unavailable, see [WithLastKnown]
//	has an unreadable node           uses the other instances
//
// The node of an instance that has died stands until its session has ended. In that time gRPC
// itself leaves the instance out, as soon as the connection breaks.
package grpcdocent
