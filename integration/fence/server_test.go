package fence_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const remedy = "Remedy: run scripts/databases.sh from the repository's root (Debian: apt-get install postgresql mariadb-server-core)"

// stopLimit is the time that a server has to end in good order.
const stopLimit = 20 * time.Second

// startPostgreSQL starts a server of the test's own and returns its connect
// string. It ends the test when it cannot, with what to install if that is
// why.
func startPostgreSQL(t *testing.T) string {
	t.Helper()
	initdb := program(t, "initdb", "/usr/lib/postgresql/*/bin")
	dir := serverDir(t)
	data := filepath.Join(dir, "data")
	finish(t, dir, initdb, "-D", data, "-U", "docent", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	launch(t, dir, syscall.SIGINT, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "deadlock_timeout=100ms")
	dsn := "host=" + dir + " user=docent dbname=postgres sslmode=disable"
	await(t, "pgx", dsn)
	return dsn
}

// startMariaDB starts a server of the test's own as startPostgreSQL does.
func startMariaDB(t *testing.T) string {
	t.Helper()
	install := program(t, "mariadb-install-db", "/usr/bin")
	dir := serverDir(t)
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	finish(t, dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	launch(t, dir, syscall.SIGTERM, program(t, "mariadbd", "/usr/sbin"), "--no-defaults", "--datadir="+data,
		"--socket="+socket, "--pid-file="+filepath.Join(dir, "pid"), "--skip-networking",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0")
	dsn := "root@unix(" + socket + ")/"
	await(t, "mysql", dsn+"mysql")
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE docent"); err != nil {
		t.Fatal(err)
	}
	return dsn + "docent"
}

// program finds a program on the path or in the newest directory that matches.
func program(t testing.TB, name, dirs string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dirs, name))
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	}
	at, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed. %s", name, remedy)
	}
	return at
}

// version is the number in /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// serverDir is a short path, because a socket's is limited to some hundred
// bytes, and belongs to the user that the server runs as.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence-") //nolint:usetesting // t.TempDir is too long and closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nobody is the user that servers run as if the test runs as root: they refuse
// to run as root.
const nobody = 65534

func command(t *testing.T, dir, name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	said := &bytes.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	// ^C is for the test, which stops the server; a test that is killed cannot.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd, said
}

// finish runs a command to its end.
func finish(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd, said := command(t, dir, name, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, said, remedy)
	}
}

// launch runs a server until the test ends, and prints its log if the test
// failed.
func launch(t *testing.T, dir string, stop syscall.Signal, name string, args ...string) {
	t.Helper()
	cmd, said := command(t, dir, name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v. %s", name, err, remedy)
	}
	var once sync.Once
	end := func() {
		_ = cmd.Process.Signal(stop)
		kill := time.AfterFunc(stopLimit, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
	}
	t.Cleanup(func() {
		once.Do(end)
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), said)
		}
	})
}

// await opens connections until the server answers one. It cannot tell by
// itself, so asking again is the only way to wait.
func await(t *testing.T, driver, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	eventually(t, fmt.Sprintf("%s at %s answers", driver, dsn), func(ctx context.Context) error { return db.PingContext(ctx) })
}

// eventually asks again until ask returns nil.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("it did not happen that %s: %v", what, err)
		case <-again.C:
		}
	}
}
