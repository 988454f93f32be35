// Package where knows the servers: which there are, in which order they are tried and at what pace,
// how one of them is dialed, and why it is not reached. A [Servers] outlives the sessions of
// its client. All of its methods may be called at the same time.
//
// The way to a dial: go-zookeeper's loop asks session.hosts for a server, which is [Servers.Pick]. The
// Link makes the pause of [Servers.Pace], gets a login, and calls [Servers.Dial], which resolves the
// name. Pick goes round through the servers of the ensemble's configuration first and those of the
// connect string or of SetServers then, each group shuffled anew when it changes.
package where
