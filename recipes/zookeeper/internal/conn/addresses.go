package conn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// defaultDial reaches one of the addresses of a name, which may be those of the
// whole ensemble. net.Dialer tries them in the same order each time. If the first is
// silent it waits until the time is over. So one server that stands still would keep
// the session from all the others.
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

// nextAddress is after how long the next address is tried too: RFC 8305, section 8.
const nextAddress = 250 * time.Millisecond

// dialAny returns the first connection to one of the addresses. Each is tried a
// moment after the one before, or when that has failed; the ones before go on. A
// share of the time for each would keep the session from servers that are far.
func dialAny(ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results, begun, ended := make(chan result), 0, 0
	defer func() { // of those that were slower
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
