// Package kerberos logs clients in with Kerberos 5 (SASL GSSAPI), for client.WithSASL. It is a module
// of its own, so that other programs do not import gokrb5.
//
//	m, err := kerberos.Keytab("billing@EXAMPLE.COM", "/etc/billing.keytab")
//	...
//	defer m.Close()
//	c, err := client.Connect(ctx, "zk1.example.com:2181", client.WithSASL(m))
//
// # Tickets
//
// A ticket is fetched before a dial, and kept. When five sixths of its life are over the
// mechanism fetches the next one by itself, and reads the keytab or the credential cache again
// for that. While no KDC answers, a ticket serves until its end. The end of a ticket does not
// end a connection: only a login needs one.
//
// # The server's name
//
// The ticket is for zookeeper/HOST, with the host as the connect string has it. No name is
// looked up backwards, as Java's client does. [WithService] and [WithServerPrincipal] are for
// servers with other principals.
package kerberos
