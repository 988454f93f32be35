package zktest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// relay puts a listener in front of a server. The server itself speaks no TLS.
func relay(l net.Listener, srv *zktest.Server) {
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	for {
		outside, err := l.Accept()
		if err != nil {
			return // l is closed
		}
		inside, err := srv.DialContext(context.Background(), "", "")
		if err != nil {
			_ = outside.Close()
			continue
		}
		go carry(inside, outside)
		go carry(outside, inside)
	}
}

// A server that is reached over TLS.
func Example_tls() {
	srv, err := zktest.Start()
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = srv.Close() }()
	web := httptest.NewTLSServer(nil) // lends its certificate
	defer web.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = l.Close() }()
	go relay(l, srv) // ends with l

	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	conn, _, err := zk.Connect([]string{l.Addr().String()}, 10*time.Second,
		zk.WithLogger(log.New(io.Discard, "", 0)),
		zk.WithDialer(func(network, address string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, &tls.Config{RootCAs: trusted})
		}))
	if err != nil {
		log.Panic(err)
	}
	defer conn.Close()
	path, err := conn.Create("/secret", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output:
	// /secret <nil>
}
