package server

import (
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
)

// Connections returns credentials with which a session can detect that its host has died: see
// Config.Lifetime. A live host ends the stream and keeps the connection. When a host dies,
// the operating system closes the connection, and gRPC then ends the streams.
//
// If the TLS handshake of a connection has selected carry.Protocol, serve gets the connection, in
// a goroutine of its own, and gRPC does not: see ServeCalls.
func Connections(c credentials.TransportCredentials, serve func(net.Conn)) credentials.TransportCredentials {
	return connections{c, serve}
}

type connections struct {
	credentials.TransportCredentials
	serve func(net.Conn)
}

func (c connections) Clone() credentials.TransportCredentials {
	return connections{c.TransportCredentials.Clone(), c.serve}
}

// ServerHandshake implements TransportCredentials. gRPC itself removes the deadline that it has
// set for the handshake.
func (c connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	if t, ok := info.(credentials.TLSInfo); ok && t.State.NegotiatedProtocol == carry.Protocol {
		go c.serve(carry.Abrupt(conn, raw))
		return nil, nil, credentials.ErrConnDispatched
	}
	noted := &connection{Conn: conn}
	return noted, authInfo{info, noted}, nil
}

type authInfo struct {
	credentials.AuthInfo
	connection *connection
}

// connection records its end before gRPC can see it.
type connection struct {
	net.Conn
	ended atomic.Bool
}

func (c *connection) Read(b []byte) (int, error)  { return c.note(c.Conn.Read(b)) }
func (c *connection) Write(b []byte) (int, error) { return c.note(c.Conn.Write(b)) }

func (c *connection) Close() error {
	c.ended.Store(true)
	return c.Conn.Close()
}

func (c *connection) note(n int, err error) (int, error) {
	if err != nil {
		c.ended.Store(true)
	}
	return n, err
}

// outlive is called when the session's stream has ended. If the connection has ended too, the
// host has died, and outlive waits for the end of the lifetime or of the session. Otherwise
// it returns at once.
func (ss *session) outlive(st stream) {
	p, _ := peer.FromContext(st.Context())
	if p == nil || ss.lifetime == nil {
		return
	}
	if info, ok := p.AuthInfo.(authInfo); !ok || !info.connection.ended.Load() {
		return
	}
	select {
	case <-ss.lifetime:
	case <-ss.Client.Done():
	case <-ss.ctx.Done():
	}
}
