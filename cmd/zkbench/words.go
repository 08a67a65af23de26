package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// A server's first TLS handshake takes seconds on a busy machine.
	askTimeout = 10 * time.Second
	maxAnswer  = 1 << 20
)

// words asks servers with ZooKeeper's four-letter words.
type words struct {
	addrs []string
	tls   *tls.Config // nil without
}

// newWords returns words for the servers of a configuration that is normal.
func newWords(cfg recipes.SessionConfig) (words, error) {
	w := words{addrs: cfg.Servers}
	if cfg.TLS == nil {
		return w, nil
	}
	var err error
	w.tls, err = cfg.TLS.ClientConfig()
	return w, err
}

// ask sends a word to a server and returns its answer.
func (w words) ask(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := w.dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if ctx.Err() != nil {
		return "", fmt.Errorf("ask %s: no answer: %w", addr, context.Cause(ctx))
	}
	// With TLS a server may end the connection without a closing alert.
	if err != nil && (w.tls == nil || len(answer) == 0) {
		return "", fmt.Errorf("ask %s: %w", addr, err)
	}
	return string(answer), nil
}

func (w words) dial(ctx context.Context, addr string) (net.Conn, error) {
	if w.tls == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{Config: w.tls}).DialContext(ctx, "tcp", addr)
}
