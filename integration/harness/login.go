package harness

import "github.com/docent-go/docent/integration/zkcontainer"

// WithUsers lets clients log in by SASL with DIGEST-MD5 under these names and passwords,
// and ACLs name them. Neither may hold a quotation mark or a backslash. A later
// [WithProperty] overrides what this sets.
func WithUsers(users map[string]string) Option { return with(zkcontainer.WithSASLDigest(users)) }

// WithRequiredLogin makes the servers refuse every request of a client that has not
// logged in; see [WithUsers].
func WithRequiredLogin() Option { return WithProperty("sessionRequireClientSASLAuth", "true") }

// WithoutLoginScheme takes from an earlier [WithUsers] that ACLs can name the users: the scheme
// of addresses, which every server has, takes its place.
func WithoutLoginScheme() Option {
	return WithProperty("authProvider.1", "org.apache.zookeeper.server.auth.IPAuthenticationProvider")
}

// jaasFile is where servers find the file of [WithJAAS].
const jaasFile = "/etc/zookeeper/jaas.conf"

// WithJAAS makes the servers offer a login by SASL. section is the text of the section Server in
// their JAAS file, without its name. If required, the servers refuse clients without a login.
func WithJAAS(section string, required bool) Option {
	return func(c *config) {
		WithFile(jaasFile, []byte("Server {\n"+section+"\n};\n"))(c)
		WithSystemProperty("java.security.auth.login.config", jaasFile)(c)
		WithProperty("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider")(c)
		if required {
			WithRequiredLogin()(c)
		}
	}
}
