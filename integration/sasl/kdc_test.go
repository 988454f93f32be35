package sasl_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// kdc is a KDC of the test's own, on a port of this host. It needs no root.
type kdc struct {
	t    *testing.T
	dir  string
	port int
	env  []string
	cmd  *exec.Cmd
}

const realm = "DOCENT.TEST"

// startKDC makes a realm with the principals zookeeper/localhost and docent, and their keytabs. The
// tickets of docent last so long.
func startKDC(ctx context.Context, t *testing.T, life string) *kdc {
	t.Helper()
	for _, command := range []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"} {
		if _, err := exec.LookPath(command); err != nil {
			t.Fatalf("%v; install Debian's krb5-kdc, krb5-admin-server and krb5-user (/usr/sbin must be in PATH)", err)
		}
	}
	in, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &kdc{t: t, dir: t.TempDir(), port: in.Addr().(*net.TCPAddr).Port} //nolint:errcheck,forcetypeassert // it is TCP
	_ = in.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", k.port)
	k.write("krb5.conf", fmt.Sprintf("[libdefaults]\n default_realm=%s\n dns_lookup_kdc=false\n dns_canonicalize_hostname=false\n rdns=false\n udp_preference_limit=1\n"+
		"[realms]\n %s = {\n  kdc = %s\n }\n[domain_realm]\n localhost = %s\n", realm, realm, addr, realm))
	k.write("kdc.conf", fmt.Sprintf("[realms]\n %s = {\n  database_name=%s/db\n  key_stash_file=%s/stash\n  kdc_listen=%s\n  kdc_tcp_listen=%s\n"+
		"  supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal\n }\n", realm, k.dir, k.dir, addr, addr))
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.file("krb5.conf"), "KRB5_KDC_PROFILE="+k.file("kdc.conf"))
	k.run(ctx, "kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	for _, query := range []string{
		"addprinc -randkey zookeeper/localhost", "addprinc -randkey -maxlife " + life + " docent",
		"ktadd -k " + k.file("old.keytab") + " docent", "ktadd -k " + k.file("docent.keytab") + " docent", // each makes a new key
		"ktadd -k " + k.file("server.keytab") + " zookeeper/localhost",
		"addprinc -pw s3cret other",
	} {
		k.run(ctx, "kadmin.local", "-r", realm, "-q", query)
	}
	t.Cleanup(k.stop)
	k.start(ctx)
	return k
}

func (k *kdc) file(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(k.file(name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kdc) read(name string) []byte {
	k.t.Helper()
	b, err := os.ReadFile(k.file(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k *kdc) run(ctx context.Context, name string, args ...string) {
	k.t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = k.env
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// start starts the KDC, and waits until it answers.
func (k *kdc) start(ctx context.Context) {
	k.t.Helper()
	k.cmd = exec.CommandContext(context.WithoutCancel(ctx), "krb5kdc", "-n", "-P", k.file("pid"))
	k.cmd.Env = k.env
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", k.port))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("the KDC does not answer: %v", err)
		}
		t := time.NewTimer(50 * time.Millisecond)
		<-t.C
	}
}

// stop ends the KDC.
func (k *kdc) stop() {
	if k.cmd != nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		k.cmd = nil
	}
}
