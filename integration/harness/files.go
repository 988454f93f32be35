package harness

import (
	"bytes"

	"github.com/testcontainers/testcontainers-go"
)

// WithFile puts a file into the container of every server, readable for everybody.
func WithFile(path string, content []byte) Option {
	return func(c *config) {
		c.opts = append(c.opts, testcontainers.CustomizeRequestOption(func(r *testcontainers.GenericContainerRequest) error {
			r.Files = append(r.Files, testcontainers.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: path, FileMode: 0o644})
			return nil
		}))
	}
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
