// Package discovery lets services find each other: an instance registers itself, and a directory
// tells which instances a service has. It reads and writes the nodes of Apache Curator's
// discovery, of Spring Cloud Zookeeper, and of other registries. The types have Curator's names
// where they mean the same.
//
//	services, err := discovery.New(c, "", discovery.SpringCloud()) // c is of client.Connect
//	if err != nil {
//		return err
//	}
//	own, err := services.Register(ctx, discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 8080})
//	if err != nil {
//		return err
//	}
//	defer own.Close() // the instance is gone when it returns
//
// A caller follows a service:
//
//	orders, err := services.Cache("orders")
//	if err != nil {
//		return err
//	}
//	if err := orders.Start(ctx); err != nil { // returns with the first snapshot
//		return err
//	}
//	defer orders.Close()
//	for _, i := range orders.Snapshot().Instances { // a look costs no request
//		fmt.Println(i.HostPort(), i.Zone)
//	}
//
// Where to go on:
//
//   - To have an instance picked for each call, and those that fail set aside: [ServiceProvider].
//   - To hear of changes: [ServiceCache.Changes].
//   - To change an instance that this program has registered: [Registration.Update],
//     [Registration.Disable]. To change one of another program: [ServiceDiscovery.Edit].
//   - The address of this host: [HostAddress].
//
// # Layouts
//
// A [Codec] says where the nodes of a registry are and what they have in them:
//
//	codec            base            ID, if none is given     carries also
//	Curator          the user's      a UUID                   TLSPort, Disabled, URISpec, all types
//	CuratorString    the user's      a UUID                   the same, and a text as Payload
//	CuratorMap       the user's      a UUID                   the same, and Metadata, Zone, Weight, Version
//	CuratorJSON      the user's      a UUID                   the same as Curator, and a Payload of a type
//	SpringCloud      /services       a UUID                   what CuratorMap carries
//	Dubbo            /services       <address>:<port>         TLSPort, URISpec, Metadata, Zone, Weight, Version
//	Kratos           /microservices  a UUID                   TLSPort, Endpoints, Metadata, Zone, Weight, Version
//	Kitex            /               <address>:<port>         Metadata, Zone, Weight, Version
//	GoKit            the user's      _c_<GUID>-, and a number one of Endpoints
//	Serverset        the user's      member_, and a number    Endpoints, Disabled, a shard
//	Nerve            the user's      <address>:<port>         Metadata, Zone, Weight, Version
//	HostPort         the user's      <address>:<port>         nothing
//
// All carry Service, Address and Port. A field that a codec cannot carry is refused with [ErrNotCarried]
// and never dropped. Readers in Java refuse a whole service for one node that they cannot
// read. So all writers of one service take one layout, and one kind of payload. Programs in
// Go alone take [CuratorMap].
//
// # What is true after failure
//
//	what happens                            the registration                      a directory
//	the service loses its connection        stands                                has the instance
//	the service loses its session           comes back, in one transaction        has the instance, or misses it until then
//	the service crashes, hangs, is cut off                                        has the instance until its session is over
//	an operator deletes the node            is made again                         misses it meanwhile
//	an update's answer is lost              is resolved, and written              sees it
//	the caller loses its connection                                               keeps its instances, and is Stale
//	a node has no valid data                                                      Skipped has it, and the others stay
//
// An instance that is registered need not be alive: the servers only know that its session has
// not ended. Callers find out by calling.
package discovery
