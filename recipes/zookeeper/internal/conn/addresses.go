package conn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// defaultDial connects to one of the addresses of a host name, which may be the addresses of
// the whole ensemble. net.Dialer tries them in the same order each time, and waits for a silent
// one until the time is over. So one server that hangs would keep the session from all the
// others.
func defaultDial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return dialAny(ctx, found, func(ctx context.Context, ip string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(ip, port))
	})
}

// nextAddress is the delay after which the next address is tried in parallel (RFC 8305, section
// 8).
const nextAddress = 250 * time.Millisecond

// dialAny returns the first connection to one of the addresses. It tries the next address after
// nextAddress, or when an attempt has failed. Earlier attempts continue. A fixed share of the
// time for each address would keep the session from servers that are far away.
func dialAny(ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results, begun, ended := make(chan result), 0, 0
	defer func() { // close the connections of slower attempts
		cancel()
		for ; ended < begun; ended++ {
			if r := <-results; r.err == nil {
				_ = r.conn.Close()
			}
		}
	}()
	next := time.NewTimer(nextAddress)
	defer next.Stop()
	var failed error
	for {
		if begun < len(addresses) {
			address := addresses[begun]
			begun++
			go func() {
				conn, err := dial(ctx, address)
				results <- result{conn, err}
			}()
			next.Reset(nextAddress)
		}
		select {
		case r := <-results:
			ended++
			switch {
			case r.err == nil:
				return r.conn, nil
			case failed == nil:
				failed = r.err
			default:
				failed = fmt.Errorf("%w; %w", failed, r.err)
			}
			if ended == len(addresses) {
				return nil, failed
			}
		case <-next.C:
		}
	}
}
