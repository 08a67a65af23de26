package conn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// lookupLimit bounds a look-up. With its defaults, the system's resolver waits five seconds for a
// name server that does not answer, before it asks the next one (resolv.conf(5)).
const lookupLimit = 20 * time.Second

// names resolves the names of servers. A look-up has a limit of its own, because a silent name
// server takes longer than a connection may. A session that has lost its connection cannot wait
// that long, so it uses the addresses found last.
type names struct {
	lookup func(ctx context.Context, host string) ([]string, error)
	life   context.Context // ends look-ups
	late   time.Duration   // after which waits is called
	waits  func(error)

	flights singleflight.Group // one look-up for each name
	mu      sync.Mutex
	last    map[string][]string
	turns   map[string]int // which address comes first, by name
}

// resolve returns the addresses of a server, each with the server's port. A name may have the
// addresses of the whole ensemble. net.Dialer would try them in the same order each time, and wait
// for a silent one until the time limit. Here the first is random, and each later call begins with
// the next one. In random order, an address that accepts connections and answers nothing could come
// first each time, until a session that has lost its connection is lost.
func (n *names) resolve(ctx context.Context, server string) ([]string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{server}, nil
	}
	found, err := n.find(ctx, host)
	if err != nil {
		return nil, err
	}
	for k := range found {
		found[k] = net.JoinHostPort(found[k], port)
	}
	return n.inTurn(host, found), nil
}

func (n *names) inTurn(host string, found []string) []string {
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found) // a name server may change the order too
	n.mu.Lock()
	defer n.mu.Unlock()
	turn, ok := n.turns[host]
	if !ok {
		turn = rand.IntN(len(found))
	}
	if n.turns == nil {
		n.turns = make(map[string]int)
	}
	n.turns[host] = turn + 1
	first := turn % len(found)
	return slices.Concat(found[first:], found[:first])
}

func (n *names) find(ctx context.Context, host string) ([]string, error) {
	flight := n.flights.DoChan(host, func() (any, error) {
		ctx, cancel := context.WithTimeout(n.life, lookupLimit)
		defer cancel()
		found, err := n.lookup(ctx, host)
		n.keep(host, found, err)
		return found, err
	})
	last := n.known(host)
	patience := n.late
	if last != nil {
		patience = nextAddress
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case r := <-flight:
			found, _ := r.Val.([]string)
			if r.Err == nil {
				return slices.Clone(found), nil
			}
			if last = n.known(host); last != nil {
				return last, nil
			}
			return nil, fmt.Errorf("DNS: %w", r.Err)
		case <-late.C:
			if last != nil {
				return last, nil
			}
			n.waits(fmt.Errorf("DNS: the name %s is not resolved after %v", host, n.late))
		case <-ctx.Done():
			return nil, fmt.Errorf("DNS: the name %s was not resolved: %w", host, ctx.Err())
		}
	}
}

// keep keeps the addresses of a host. It forgets those of a name that no longer exists:
// another host may have them now.
func (n *names) keep(host string, found []string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var dns *net.DNSError
	switch {
	case err == nil:
		if n.last == nil {
			n.last = make(map[string][]string)
		}
		n.last[host] = found
	case errors.As(err, &dns) && dns.IsNotFound:
		delete(n.last, host)
	}
}

func (n *names) known(host string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.last[host])
}
