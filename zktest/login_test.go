package zktest_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

func TestLoginOptions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opts []zktest.Option
		want string
	}{
		"a user":            {[]zktest.Option{zktest.WithSASLUser("u", "p")}, ""},
		"required":          {[]zktest.Option{zktest.WithSASLUser("u", "p"), zktest.WithRequiredAuth()}, ""},
		"nobody can log in": {[]zktest.Option{zktest.WithRequiredAuth()}, ""},
		"digest":            {[]zktest.Option{zktest.WithRequiredAuth("digest", "ip")}, ""},
		"no name":           {[]zktest.Option{zktest.WithSASLUser("", "p")}, `"" is not a name`},
		"not a name":        {[]zktest.Option{zktest.WithSASLUser("a@b@c", "p")}, `"a@b@c" is not a name`},
		"unknown scheme":    {[]zktest.Option{zktest.WithRequiredAuth("x509")}, `the scheme "x509"`},
		"scheme taken away": {[]zktest.Option{zktest.WithRequiredAuth(), zktest.WithoutSASLScheme()}, `the scheme "sasl"`},
	} {
		srv, err := zktest.Start(tc.opts...)
		if err == nil {
			_ = srv.Close()
		}
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
