package client_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
)

func TestParseEnsemble(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		servers []string
		version int64
	}{
		{"server.1=zk1:2888:3888:participant;10.0.0.1:2181\nserver.2=zk2:2888:3888:observer;10.0.0.2:2182\nversion=100000000", []string{"10.0.0.1:2181", "10.0.0.2:2182"}, 1 << 32},
		{"server.1=zk1:2888:3888:participant;0.0.0.0:2181\nversion=0\n", []string{"zk1:2181"}, 0},
		{"server.1=zk1:2888:3888;2181\r\nversion=aF\r\n", []string{"zk1:2181"}, 0xaf},
		{"server.1=zk1:2888:3888;:2181", []string{"zk1:2181"}, 0},
		{"server.1=[fd00::1]:2888:3888:participant;[fd00::2]:2181", []string{"[fd00::2]:2181"}, 0},
		{"server.1=[fd00::1]:2888:3888:participant;[::]:2181", []string{"[fd00::1]:2181"}, 0},
		{"server.1=[fd00::1]:2888:3888;[0:0:0:0:0:0:0:0]:2181", []string{"[fd00::1]:2181"}, 0},
		{"server.1=fd00:0:0:0:0:0:0:1:2888:3888:participant;0:0:0:0:0:0:0:0:2181", []string{"[fd00:0:0:0:0:0:0:1]:2181"}, 0},
		{"server.1=a:2888:3888|b:2889:3889:participant;0.0.0.0:2181", []string{"a:2181", "b:2181"}, 0},
		{"server.1=a:1:2;2181\nserver.2=a:3:4;2181\ngroup.1=1:2\nweight.1=1\n#x", []string{"a:2181"}, 0},
	} {
		servers, version, err := client.ParseEnsemble(tt.text)
		if err != nil || !slices.Equal(servers, tt.servers) || version != tt.version {
			t.Errorf("%q: %v, %x, %v; want %v, %x", tt.text, servers, version, err, tt.servers, tt.version)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"", "no server"},
		{"version=0", "no server"},
		{"\x00\xff", "no server"},
		{"server.1=zk1:2888:3888:participant\nversion=0", "server 1: it has no client address"},
		{"server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:participant\nversion=0", "server 2: it has no client address"},
		{"server.1=zk1:2888:3888;", "no client address"},
		{"server.1=zk1:2888:3888;2181;2281", "form that is not known"},
		{"server.1=zk1:2888:3888;zk1", "port"},
		{"server.1=zk1:2888:3888;0", "port"},
		{"server.1=;2181", "host"},
		{"server.1=zk1:2888:3888;[b,c:1]:2181", "comma"},
		{"server.1=zk1:2888:3888;zk1/a:2181", "slash"},
		{"server.1=zk1:1:2;2181\nversion=x", "version"},
	} {
		if servers, _, err := client.ParseEnsemble(tt.text); err == nil || servers != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, %v; want %q", tt.text, servers, err, tt.want)
		}
	}
}

func FuzzParseEnsemble(f *testing.F) {
	f.Add("server.1=[fd00::1]:2888:3888|b:1:2:participant;[::]:2181\nversion=1")
	f.Fuzz(func(t *testing.T, text string) {
		servers, _, err := client.ParseEnsemble(text)
		if (err == nil) != (len(servers) > 0) {
			t.Errorf("%v, %v", servers, err)
		}
		for _, s := range servers { // a connect string takes what it returns
			if _, _, err := client.ParseConnectString(s); err != nil {
				t.Error(err)
			}
		}
	})
}
