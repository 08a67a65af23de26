// Package sasl makes the client's tokens of a SASL exchange with a ZooKeeper server: DIGEST-MD5
// (RFC 2831) and GSSAPI (RFC 4752, with Kerberos 5). Package conn sends them.
//
// ZooKeeper differs from other protocols in two ways. It does not negotiate the mechanism, which is
// the server's JAAS configuration. And the user that it authorizes is the one that it
// authenticates.
package sasl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Client makes the exchanges of one session. It is safe for concurrent use. A nil Client belongs
// to a session without SASL.
type Client struct {
	cfg recipes.SASL

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
	// First returns the first token.
	First() []byte
	// Next returns the answer to a token of the server. It returns nil when the exchange
	// is complete. An error means that the server is not to be trusted, or that it does not
	// speak the mechanism.
	Next(token []byte) ([]byte, error)
}

// ErrNotOffered is the answer of a server without a SASL configuration: an empty token.
var ErrNotOffered = errors.New("the server does not offer SASL: its JAAS configuration has no Server section")

// Begin returns the exchange for a connection to host. For GSSAPI it may ask the KDC, until ctx is
// done. An error that matches recipes.ErrAuthFailed will not go away by itself.
func (c *Client) Begin(ctx context.Context, host string) (Exchange, error) {
	if c.cfg.Mechanism == "DIGEST-MD5" {
		return &digest{cfg: c.cfg, uri: digestURI}, nil
	}
	x, err := c.kerberos(ctx, host)
	var refused refusal
	switch {
	case err == nil:
		return x, nil
	case errors.As(err, &refused):
		return nil, c.Refused(host, err)
	}
	return nil, fmt.Errorf("SASL %s with %s: %w", c.cfg.Mechanism, host, err)
}

// Refused returns the error for an exchange that was refused, by either side.
func (c *Client) Refused(server string, err error) error {
	return fmt.Errorf("%w: SASL %s with %s: %w", recipes.ErrAuthFailed, c.cfg.Mechanism, server, err)
}
