// Package discoveryhttp sends HTTP requests to the instances of a service.
//
//	orders, err := d.Provider("orders") // d is a *discovery.ServiceDiscovery
//	if err != nil {
//		return err
//	}
//	if err := orders.Start(ctx); err != nil {
//		return err
//	}
//	defer orders.Close()
//	rt, err := discoveryhttp.New(orders)
//	if err != nil {
//		return err
//	}
//	web := &http.Client{Transport: rt}
//	resp, err := web.Get("http://orders/items/7") // to an instance of orders
//
// The URL names the service, and no port. The request is sent unchanged, so the Host header is
// "orders". With https the certificate must be valid for "orders", and need not name addresses.
//
// # Failures
//
// What a request tells of its instance, and whether another instance gets the request too:
//
//	the request                              the instance   again, elsewhere
//	does not reach it (refused)              has failed     yes
//	has no answer to its dial in time        is set aside   yes
//	has no answer (reset, timeout)           has failed     if it may be repeated
//	is answered 502, 503 or 504              has failed     if it may be repeated
//	breaks off in the body of the answer     has failed     no
//	is answered otherwise                    is well        no
//	is given up by its caller                nothing        no
//	is malformed, or its body breaks off     nothing        no
//
// A request may be repeated if its method is GET, HEAD, OPTIONS, TRACE, PUT or DELETE, or if it has the
// header Idempotency-Key or X-Idempotency-Key. A request with a body also needs GetBody, which
// http.NewRequest sets for bodies in memory. If the time of the request's context is over, the
// instance has failed, but no other gets the request.
//
// A request that does not reach an instance goes to the next until each was tried. So a crash loop,
// whose nodes stand until their sessions end, costs time and no request. [WithTries] bounds how many
// times a request is sent.
//
// A dial may take 5 s, see [WithTransport]. One failure of that kind is enough to set an instance aside. It
// then costs time again only for the call that tries it, and for calls that have no other instance left.
package discoveryhttp
