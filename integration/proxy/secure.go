package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// WithTLS makes the proxy speak TLS on both sides: what clients send is decrypted,
// and encrypted again for the server. clients has the certificate that the proxy
// shows to clients, server the one that it shows to the server. The proxy checks
// the server's name against server.ServerName. A cut is the end of the TCP
// connection, without a word of TLS to the client.
func WithTLS(clients, server *tls.Config) Option {
	return func(p *Proxy) { p.tlsClients, p.tlsServer = clients, server }
}

// acceptHalf does TLS with a client if the proxy is to.
func (p *Proxy) acceptHalf(ctx context.Context, client *net.TCPConn) (half, error) {
	if p.tlsClients == nil {
		return client, nil
	}
	return shakeHands(ctx, tls.Server(client, p.tlsClients))
}

// dialHalf dials the server, with TLS if the proxy is to.
func (p *Proxy) dialHalf(ctx context.Context) (half, error) {
	dialed, err := p.dialer.DialContext(ctx, "tcp", p.target)
	if err != nil {
		return nil, err
	}
	server, ok := dialed.(*net.TCPConn)
	if !ok {
		_ = dialed.Close()
		return nil, fmt.Errorf("dialed a %T", dialed)
	}
	if p.tlsServer == nil {
		return server, nil
	}
	return shakeHands(ctx, tls.Client(server, p.tlsServer))
}

func shakeHands(ctx context.Context, conn *tls.Conn) (half, error) {
	limited, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if err := conn.HandshakeContext(limited); err != nil {
		_ = conn.NetConn().Close()
		return nil, fmt.Errorf("tls: %w", err)
	}
	return conn, nil
}

// shut closes the TCP connection of one side. To close that of TLS may wait for
// the other end.
func shut(h half) {
	if secure, ok := h.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = h.Close()
}
