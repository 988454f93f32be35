// Package inside is what only recipes ask of package client. It keeps these functions
// out of the client's public API.
//
// The package stands below client, so it cannot name the types of client: they are
// type parameters here. The client fills in [Functions] with [Provide]. Each package
// above it asks for the same with [Of], in one file:
//
//	var inner = inside.Of[client.Client, client.Session, client.Op]()
//
// and calls inner.CreateAndList(ctx, s, ...) from then on. The compiler checks both
// sides against Functions. At the start of the program [Of] checks that both sides
// agree.
package inside
