// Package proxy stands between ZooKeeper clients and one server and loses, delays
// or cuts chosen requests and answers.
//
// It knows ZooKeeper's frames: the handshake, and opcode, xid and paths of every
// request, and which answer belongs to it. A [Rule] picks requests and says what
// happens to them:
//
//	p := proxy.Start(t, node.Addr())
//	lost := p.On(proxy.Match{Op: zoodefs.OpCreate, Prefix: "/locks"}, proxy.SwallowReplyAndCut)
//	... point a client at p.Addr() ...
//	created, err := lost.AwaitAnswer(ctx) // the server has created the node
//
// To force a race between two requests of one client, hold the answer to the first:
//
//	held := p.On(proxy.Match{Op: zoodefs.OpGetChildren2}, proxy.StallReplies)
//	held.AwaitAnswer(ctx) // the server has answered, the client has not heard
//	...                   // change what it was told
//	held.Resume()
//
// Besides rules there are switches for everything at once: [Proxy.Stall],
// [Proxy.Refuse], [Proxy.AcceptAndHang], [Proxy.CutAll].
//
// # What a cut looks like
//
// The client's connection is closed at once. The server's is half closed behind the
// last byte that was forwarded, so everything forwarded is served. The proxy reads,
// matches and drops what the server still answers. A stalled direction holds
// everything, the end of the connection too.
//
// # Limits
//
// Frames are read whole before they go on; one over 64 MiB cuts the connection. TLS
// is only understood with [WithTLS]. Four-letter words are passed through and not
// counted. A
// client that checks the order of answers, as the Java client does, closes its
// connection at the first answer after a swallowed one.
package proxy
