package caches_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/bench/internal/caches"
	"github.com/docent-go/docent/zktest"
)

// dialogue talks to a process of a cache.
type dialogue struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func talk(t *testing.T) *dialogue {
	t.Helper()
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- caches.Serve(t.Context(), theirIn, theirOut) }()
	t.Cleanup(func() {
		_ = in.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &dialogue{t, in, bufio.NewReader(out)}
}

// ask returns what the answer says behind "ok".
func (d *dialogue) ask(command string) string {
	d.t.Helper()
	line := d.try(command)
	said, ok := strings.CutPrefix(line, "ok")
	if !ok {
		d.t.Fatalf("%s: %s", command, line)
	}
	return strings.TrimSpace(said)
}

func (d *dialogue) try(command string) string {
	d.t.Helper()
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		d.t.Fatal(err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// plant makes a tree of 13 nodes.
func plant(t *testing.T) *zktest.Server {
	t.Helper()
	srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"))
	paths := []string{"/tree"}
	for d := range 3 {
		paths = append(paths, fmt.Sprintf("/tree/d%d", d))
		for n := range 3 {
			paths = append(paths, fmt.Sprintf("/tree/d%d/n%d", d, n))
		}
	}
	for _, path := range paths {
		if err := srv.Create(path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	return srv
}

// Every kind of Go reads the whole tree, more than once, and what follows changes does.
func TestServe(t *testing.T) {
	t.Parallel()
	srv := plant(t)
	d := talk(t)
	if got := d.try("load /tree"); !strings.HasPrefix(got, "error") {
		t.Errorf("load without a connection: %s", got)
	}
	version := 0
	for _, kind := range []string{"loop", "loop-watch", "docent", "docent-one-shot"} {
		d.ask("connect " + kind + " " + srv.Addr())
		for range 2 {
			var l caches.Load
			if err := json.Unmarshal([]byte(d.ask("load /tree")), &l); err != nil || l.Nodes != 13 || l.Took <= 0 {
				t.Errorf("%s: %+v, %v", kind, l, err)
			}
			if n, err := strconv.Atoi(d.ask("memory")); err != nil || n <= 0 {
				t.Errorf("%s: memory %d, %v", kind, n, err)
			}
			if strings.HasPrefix(kind, "docent") {
				if err := srv.SetData("/tree/d1/n1", []byte("y")); err != nil {
					t.Fatal(err)
				}
				version++
				d.ask(fmt.Sprintf("await /tree/d1/n1 %d", version))
			} else if got := d.try("await /tree 1"); !strings.HasPrefix(got, "error") {
				t.Errorf("%s follows changes: %s", kind, got)
			}
			d.ask("drop")
		}
	}
	if got := d.try("connect other " + srv.Addr()); !strings.HasPrefix(got, "error") {
		t.Errorf("an unknown kind: %s", got)
	}
	d.ask("quit")
}

// A meter counts sessions and requests apart, and no pings.
func TestMeterCounts(t *testing.T) {
	t.Parallel()
	sink, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a listener of the test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sink.Close() }()
	got := make(chan []byte, 1)
	go func() {
		c, err := sink.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(c) // the cut ends it
		got <- all
	}()
	m, err := caches.StartMeter(t.Context(), sink.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var sent []byte
	frame := func(xid, op uint32, more int) {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+more))
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, xid), op)
		sent = append(sent, append(b, make([]byte, more)...)...)
	}
	const getData, ping = 4, 11
	frame(0, ping, 40) // the first asks for a session, whatever is at the place of its type
	frame(1, getData, 100)
	frame(1<<32-2, ping, 0)
	frame(2, getData, 50)
	if _, err := c.Write(sent); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if all := <-got; !bytes.Equal(all, sent) {
		t.Errorf("%d bytes were passed on of %d", len(all), len(sent))
	}
	if n := m.Count(); n != (caches.Count{Sessions: 1, Requests: 2, Bytes: 166}) {
		t.Errorf("counted %+v", n)
	}
}

// A loop sends a read for each node and a list for each directory through a meter.
func TestMeter(t *testing.T) {
	t.Parallel()
	srv := plant(t)
	m, err := caches.StartMeter(t.Context(), srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d := talk(t)
	d.ask("connect loop " + m.Addr())
	settled := func() caches.Count {
		t.Helper()
		c, err := m.Settle(t.Context(), 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := settled()
	if before.Sessions != 1 || before.Requests != 0 {
		t.Errorf("an idle client has sent %+v", before)
	}
	d.ask("load /tree")
	const reads, lists = 13, 4
	if now := settled(); now.Requests != reads+lists || now.Sessions != 1 || now.Bytes < 12*(reads+lists) {
		t.Errorf("a loop has sent %+v", now)
	}
	srv.ResetCounts()
	m.Cut()
	for m.Count().Sessions == 1 {
		time.Sleep(time.Millisecond)
	}
	if n := settled().Sessions; n != 2 {
		t.Errorf("%d sessions after a cut", n)
	}
	d.ask("drop")
	d.ask("load /tree")
	if n := srv.Count(zktest.OpGetData); n != reads {
		t.Errorf("the meter passes on %d reads of %d", n, reads)
	}
}
