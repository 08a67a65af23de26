// Package sasl makes the client's tokens of a SASL exchange with a ZooKeeper server: DIGEST-MD5
// (RFC 2831) and GSSAPI (RFC 4752, with Kerberos 5). Package conn sends them.
//
// ZooKeeper does not negotiate the mechanism, which is that of the server's JAAS configuration.
package sasl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Client makes the exchanges of one session. It is safe for concurrent use. A nil Client belongs
// to a session without SASL.
type Client struct {
	cfg     recipes.SASL
	mu      sync.Mutex
	tickets map[string]*fetch // by service; for GSSAPI
}

// New returns the client for a checked configuration. It reads and sends nothing.
func New(cfg *recipes.SASL) *Client {
	if cfg == nil {
		return nil
	}
	return &Client{cfg: *cfg, tickets: make(map[string]*fetch)}
}

// Exchange is the client's side of the authentication of one connection.
type Exchange interface {
	// Next returns the first token for nil, and then the answer to each token of the server. It
	// returns nil when the exchange is complete. An error means that the server is not to be
	// trusted, or that it does not speak the mechanism.
	Next(token []byte) ([]byte, error)
}

// ErrNotOffered is the answer of a server without a SASL configuration: an empty token.
var ErrNotOffered = errors.New("the server does not offer SASL: its JAAS configuration has no Server section")

// Begin returns the exchange for a connection to a server, or nil for a nil Client. For GSSAPI it
// may ask the KDC, until ctx is done. An error that matches recipes.ErrAuthFailed will not go away
// by itself.
func (c *Client) Begin(ctx context.Context, server string) (Exchange, error) {
	if c == nil {
		return nil, nil
	}
	if c.cfg.Mechanism == "DIGEST-MD5" {
		return &digest{cfg: c.cfg, uri: digestURI}, nil
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	x, err := c.kerberos(ctx, host)
	if errors.As(err, new(refusal)) {
		return nil, c.Refused(server, err)
	}
	if err != nil {
		return nil, fmt.Errorf("SASL %s with %s: %w", c.cfg.Mechanism, server, err)
	}
	return x, nil
}

// Refused returns the error for an exchange that was refused, by either side.
func (c *Client) Refused(server string, err error) error {
	return fmt.Errorf("%w: SASL %s with %s: %w", recipes.ErrAuthFailed, c.cfg.Mechanism, server, err)
}
