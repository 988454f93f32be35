// Package inside is what recipes ask of package client and nobody else does.
// It keeps that out of the client's public API, which people who import it
// read and rely on.
//
// The package stands below client, so that it cannot name the types of that
// package: they are type parameters here. The client fills in [Functions] with
// [Provide]. Each package above it asks for the same with [Of], in one file:
//
//	var inner = inside.Of[client.Client, client.Session, client.Op]()
//
// and calls inner.CreateAndList(ctx, s, ...) from then on. The compiler checks
// both sides against Functions, and the start of the program that they agree.
package inside
