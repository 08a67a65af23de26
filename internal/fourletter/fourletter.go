// Package fourletter sends ZooKeeper's four-letter words (srvr, mntr, conf, ...) to servers.
package fourletter

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// ErrNotServing is returned if a server answers that it serves no requests: it is still
// starting, or has no quorum. It may serve later.
var ErrNotServing = errors.New("server is up but not serving requests")

// most bounds an answer. "dump" lists all sessions and their znodes.
const most = 64 << 20

// Dial connects to an address.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer returns a Dial that uses TLS with cfg, or no TLS if cfg is nil.
func Dialer(cfg *tls.Config) Dial {
	if cfg == nil {
		return new(net.Dialer).DialContext
	}
	return (&tls.Dialer{Config: cfg}).DialContext
}

// Ask sends a word to a server and returns the whole answer. It waits until ctx ends, because
// a frozen server accepts the connection and does not answer.
func (dial Dial) Ask(ctx context.Context, addr, word string) (string, error) {
	answer, err := dial.exchange(ctx, addr, word)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, ErrNotServing) {
		err = cause // the error of the connection says that it was closed, but not why
	}
	if err != nil {
		return "", fmt.Errorf("ask %s for %q: %w", addr, word, err)
	}
	return answer, nil
}

func (dial Dial) exchange(ctx context.Context, addr, word string) (string, error) {
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := read(io.LimitReader(conn, most))
	// With TLS a server may end the connection without a closing alert.
	if _, secure := conn.(*tls.Conn); secure && answer != "" && ctx.Err() == nil && !errors.Is(err, ErrNotServing) {
		err = nil
	}
	return answer, err
}

// read reads until the server closes the connection, or until it says that it does
// not serve. After that line, a ZooKeeper 3.8 that is still starting does not close the
// connection: without a database, ZooKeeperServer.removeCnxn throws a
// NullPointerException. The connection would stay open for ever.
func read(r io.Reader) (string, error) {
	var answer strings.Builder
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		answer.WriteString(line)
		switch {
		case strings.Contains(line, "not currently serving requests"):
			return "", ErrNotServing
		case errors.Is(err, io.EOF):
			return answer.String(), nil
		case err != nil:
			return answer.String(), err
		}
	}
}

// Pairs returns the values of an answer that has a name and its value on each line.
func Pairs(answer, separator string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(answer) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), separator); ok {
			found[name] = strings.TrimSpace(value)
		}
	}
	return found
}
