package plugin

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
)

// callConnections serves the connections for calls alone. They arrive on the same socket as
// gRPC's, with the same mutual TLS, and request another protocol.
type callConnections struct {
	server *server.Server
	ctx    context.Context
	close  context.CancelFunc // ends the connections. The process, and their calls, end soon after.
}

func newCallConnections(s *server.Server) *callConnections {
	c := &callConnections{server: s}
	c.ctx, c.close = context.WithCancel(context.Background())
	return c
}

// credentials returns credentials with which a gRPC server leaves these connections to c.
func (c *callConnections) credentials(config *tls.Config) credentials.TransportCredentials {
	config = config.Clone()
	config.NextProtos = []string{carry.Protocol} // gRPC adds its own
	return sorting{credentials.NewTLS(config), c}
}

// sorting passes each connection to the server of its protocol.
type sorting struct {
	credentials.TransportCredentials
	calls *callConnections
}

func (s sorting) Clone() credentials.TransportCredentials {
	return sorting{s.TransportCredentials.Clone(), s.calls}
}

// ServerHandshake implements TransportCredentials. gRPC itself removes the deadline that it
// has set for the handshake.
func (s sorting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := s.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	if t, ok := info.(credentials.TLSInfo); ok && t.State.NegotiatedProtocol == carry.Protocol {
		go s.calls.server.ServeCalls(s.calls.ctx, carry.Abrupt(conn, raw))
		return nil, nil, credentials.ErrConnDispatched
	}
	return conn, info, nil
}
