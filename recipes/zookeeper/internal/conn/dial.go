package conn

import (
	"context"
	crypto "crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/sasl"
)

// Backoff between attempts to reach a server. The first attempt after a lost connection starts
// at once, because another server of the ensemble may work. Then the pause doubles. Jitter
// spreads the clients of a restarted ensemble. go-zookeeper has neither.
const (
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
)

// backoff returns the longest pause before the n-th attempt since the last established
// connection, counted from 0.
func backoff(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(firstBackoff<<min(n-1, 16), maxBackoff)
}

var errGateClosed = errors.New("the session is over")

// A DialFunc connects to a server. Only tests set one.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer connects go-zookeeper to servers: it is the library's HostProvider and Dialer. Once
// the gate is closed it refuses, so that a zk.Conn cannot start a second session.
type dialer struct {
	wire   *Wire
	tls    *tls.Config  // of the latest connection; nil: no TLS
	sasl   *sasl.Client // nil: no SASL
	dial   DialFunc
	names  *names // nil: the network is a test's
	random *randomSource

	gate context.Context // done when no more connections may be made
	shut context.CancelFunc

	mu      sync.Mutex
	servers []string
	next    int
	dials   int       // since a session was last established
	silent  int       // of these, those that were not answered
	began   time.Time // of the latest attempt
	last    error
	current *Conn
}

func newDialer(w *Wire) (*dialer, error) {
	d := &dialer{wire: w, sasl: sasl.New(w.SASL), dial: w.Dial, random: newRandomSource(), servers: append([]string(nil), w.Servers...)}
	if w.TLS != nil {
		var err error
		if d.tls, err = w.TLS.ClientConfig(); err != nil {
			return nil, err
		}
	}
	d.random.shuffle(d.servers)
	d.gate, d.shut = context.WithCancel(context.Background())
	if d.dial == nil {
		d.dial = new(net.Dialer).DialContext
		d.names = &names{lookup: net.DefaultResolver.LookupHost, life: d.gate, late: w.ConnectTimeout, waits: d.failed}
	}
	return d, nil
}

// Init, Len, Next and Connected implement zk.HostProvider. The dialer resolves names at each
// attempt, so it finds a server that has moved: see names.
func (d *dialer) Init([]string) error { return nil }

func (d *dialer) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.servers)
}

// SetServers replaces the servers. The connection remains.
func (w *Wire) SetServers(servers []string) {
	d := w.dialer
	servers = slices.Clone(servers)
	d.random.shuffle(servers)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(servers)), slices.Sorted(slices.Values(d.servers))) {
		d.servers, d.next = servers, 0
	}
}

// Next returns the server to try next. If retryStart is true, go-zookeeper checks whether it
// was closed, and if not, sleeps for a second. That is right for a closed gate and too slow
// otherwise.
func (d *dialer) Next() (server string, retryStart bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	server = d.servers[d.next%len(d.servers)]
	d.next++
	return server, d.gate.Err() != nil
}

func (d *dialer) Connected() {}

// Dial implements zk.Dialer. It ignores go-zookeeper's timeout: ConnectTimeout also covers TLS
// and ZooKeeper's handshake.
func (d *dialer) Dial(network, address string, _ time.Duration) (net.Conn, error) {
	c, err := d.connect(d.gate, network, address)
	if err != nil {
		if d.gate.Err() == nil {
			d.failed(err)
		}
		if errors.Is(err, recipes.ErrAuthFailed) {
			d.wire.Lost(err)
		}
		return nil, err
	}
	return c, nil
}

// connect waits for the backoff and makes one connection. It gives up when until is done.
func (d *dialer) connect(until context.Context, network, address string) (*Conn, error) {
	d.mu.Lock()
	pause := d.pause()
	d.dials++
	d.mu.Unlock()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-until.Done():
		}
	}
	if until.Err() != nil {
		return nil, errGateClosed
	}
	d.mu.Lock()
	d.began = time.Now()
	limit := d.limit()
	d.mu.Unlock()
	r, err := d.race(until, network, address, limit)
	if err != nil {
		return nil, err
	}
	c, err := newConn(r.Conn, d.wire, r.deadline, d.failed)
	if err != nil {
		r.Close()
		return nil, err
	}
	c.exchange = r.exchange
	d.mu.Lock()
	d.current = c
	d.mu.Unlock()
	if until.Err() != nil { // Drop may have run before current was set
		c.Close()
		return nil, errGateClosed
	}
	return c, nil
}

// pause returns the pause before the next attempt. The backoff counts from the beginning of the
// attempt before: one that was not answered has taken enough time. A session that has lost its
// connection makes at least as many attempts per timeout as it would send confirmations, and pauses
// for at most a quarter of what remains. So it reconnects if a server answers shortly before its
// deadline (see "Why ten" in package lease). The caller holds the mutex.
func (d *dialer) pause() time.Duration {
	longest := backoff(d.dials)
	if l := d.wire.Lease; d.wire.ID() != 0 {
		longest = min(longest, l.Interval(), max(l.Remaining()/4, firstBackoff))
	}
	if longest == 0 {
		return 0
	}
	return longest/2 + d.random.below(longest/2) - time.Since(d.began)
}

// limit returns how long the next attempt may take. A session that has lost its connection must
// reach another server before its deadline, even if some servers accept connections and answer
// nothing. So the first attempt takes a share of the timeout. After each attempt that was not
// answered the next one has twice as long, because all servers may be slow, but at most half of what
// remains. That also holds for a single server: an attempt whose packets are lost would outlast the
// outage. The caller holds the mutex.
func (d *dialer) limit() time.Duration {
	w := d.wire
	if w.ID() == 0 {
		return w.ConnectTimeout
	}
	first := max(w.Lease.Timeout()/time.Duration(3*len(d.servers)), nextAddress)
	return min(first<<min(d.silent, 16), max(w.Lease.Remaining()/2, shortest), w.ConnectTimeout)
}

// shortest is the least time of an attempt to reach a server.
const shortest = 50 * time.Millisecond

// race connects to the first server that answers. It begins with address, and tries the next ones
// as well if nothing answers for a while. A server that a firewall hides would otherwise take all
// of the time. Each server takes part only until TLS is ready: if two servers got the session's
// handshake, the later one would take the session from the earlier one.
func (d *dialer) race(ctx context.Context, network, address string, limit time.Duration) (*reached, error) {
	d.mu.Lock()
	order := []string{address}
	if at := slices.Index(d.servers, address); at >= 0 {
		order = slices.Concat(d.servers[at:], d.servers[:at])
	}
	d.mu.Unlock()
	next := nextAddress
	if d.wire.ID() != 0 { // shortly before the deadline, all servers get a part of what remains
		next = min(next, max(d.wire.Lease.Remaining()/time.Duration(4*len(order)), firstBackoff))
	}
	r, err := firstOf(ctx, order, next, false, func(ctx context.Context, address string) (*reached, error) {
		return d.reach(ctx, network, address, limit)
	})
	if err == nil && r.server != address {
		d.mu.Lock()
		d.next = slices.Index(d.servers, r.server) + 1
		d.mu.Unlock()
	}
	return r, err
}

// reached is a connection to a server, before ZooKeeper's handshake.
type reached struct {
	net.Conn
	server   string
	deadline time.Time // of the handshake
	exchange sasl.Exchange
}

// reach connects to one server. limit does not include the look-up of the name.
func (d *dialer) reach(ctx context.Context, network, server string, limit time.Duration) (*reached, error) {
	addresses := []string{server}
	if d.names != nil {
		var err error
		if addresses, err = d.names.resolve(ctx, server); err != nil {
			return nil, err
		}
	}
	r := &reached{server: server, deadline: time.Now().Add(limit)}
	ctx, cancel := context.WithDeadline(ctx, r.deadline)
	defer cancel()
	var err error
	if r.exchange, err = d.sasl.Begin(ctx, server); err != nil {
		return nil, err
	}
	r.Conn, err = firstOf(ctx, addresses, nextAddress, true, func(ctx context.Context, address string) (net.Conn, error) {
		c, err := d.dial(ctx, network, address)
		if err == nil && d.wire.TLS != nil {
			c, err = d.secure(ctx, c, server)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// security returns the configuration of the next connection. Its files may have changed.
func (d *dialer) security() *tls.Config {
	cfg, err := d.wire.TLS.ClientConfig()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.wire.Logger.Warn("the files of TLS cannot be used; continuing with their former contents", "error", err)
	} else {
		d.tls = cfg
	}
	return d.tls.Clone()
}

func (d *dialer) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	cfg := d.security()
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		cfg.ServerName = host
	}
	secured := tls.Client(raw, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, refusedTLS(address, err)
	}
	return secured, nil
}

// established resets the backoff, the limit and the last error.
func (d *dialer) established() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials, d.silent, d.last = 0, 0, nil
}

func (d *dialer) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		d.silent++
	}
}

// nextAddress is the delay after which the next address or server is tried in parallel (RFC 8305,
// section 8).
const nextAddress = 250 * time.Millisecond

// firstOf returns the first connection to one of the addresses. It tries the next address after the
// given delay. Earlier attempts continue. A fixed share of the time for each address would keep the
// session from servers that are far away. If an attempt fails, it tries the next one at once. With
// all false it does so only while others are in flight: it fails with the first failure otherwise,
// so that the caller's backoff lies between attempts that are refused.
func firstOf[C net.Conn](ctx context.Context, addresses []string, delay time.Duration, all bool, dial func(context.Context, string) (C, error)) (C, error) {
	type result struct {
		conn C
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
	next := time.NewTimer(delay)
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
			next.Reset(delay)
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
			if ended == len(addresses) || !all && ended == begun {
				var none C
				return none, failed
			}
		case <-next.C:
		}
	}
}

// randomSource draws numbers that need not be secret. Each session has its own small generator,
// seeded by crypto/rand. So a test that replaces crypto/rand's source, as the simulation does,
// determines every random choice.
type randomSource struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newRandomSource() *randomSource {
	var seed [16]byte
	_, _ = crypto.Read(seed[:]) // never fails, according to its documentation
	return &randomSource{rand: rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:]), binary.BigEndian.Uint64(seed[8:])))}
}

// below returns a duration in [0, limit). limit must be positive.
func (c *randomSource) below(limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rand.Int64N(int64(limit)))
}

func (c *randomSource) shuffle(list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// RandomBelow returns a random duration below limit. It spreads clients that wait at the same time.
func (w *Wire) RandomBelow(limit time.Duration) time.Duration { return w.dialer.random.below(limit) }
