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
	tls    *tls.Config
	sasl   *sasl.Client // nil: no SASL
	dial   DialFunc
	chance *chance

	gate context.Context // done when no more connections may be made
	shut context.CancelFunc

	mu      sync.Mutex
	servers []string
	next    int
	dials   int // since a session was last established
	last    error
	current *Conn
}

func newDialer(w *Wire) (*dialer, error) {
	d := &dialer{wire: w, sasl: sasl.New(w.SASL), dial: w.Dial, chance: newChance(), servers: append([]string(nil), w.Servers...)}
	if d.dial == nil {
		d.dial = defaultDial
	}
	if w.TLS != nil {
		var err error
		if d.tls, err = w.TLS.ClientConfig(); err != nil {
			return nil, err
		}
	}
	d.chance.shuffle(d.servers)
	d.gate, d.shut = context.WithCancel(context.Background())
	return d, nil
}

// Init, Len, Next and Connected implement zk.HostProvider. The dialer resolves names at each
// attempt, so it finds a server that has moved.
func (d *dialer) Init([]string) error { return nil }

func (d *dialer) Len() int { return len(d.servers) }

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
	pause := backoff(d.dials)
	d.dials++
	d.mu.Unlock()
	if pause > 0 {
		timer := time.NewTimer(pause/2 + d.chance.below(pause/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-until.Done():
		}
	}
	if until.Err() != nil {
		return nil, errGateClosed
	}
	deadline := time.Now().Add(d.wire.ConnectTimeout)
	ctx, cancel := context.WithDeadline(until, deadline)
	defer cancel()
	exchange, err := d.sasl.Begin(ctx, address)
	if err != nil {
		return nil, err
	}
	raw, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.tls != nil {
		if raw, err = d.secure(ctx, raw, address); err != nil {
			return nil, err
		}
	}
	c, err := newConn(raw, d.wire, deadline, d.failed)
	if err != nil {
		raw.Close()
		return nil, err
	}
	c.exchange = exchange
	d.mu.Lock()
	d.current = c
	d.mu.Unlock()
	if until.Err() != nil { // Drop may have run before current was set
		c.Close()
		return nil, errGateClosed
	}
	return c, nil
}

func (d *dialer) secure(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	cfg := d.tls
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secured := tls.Client(raw, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, refusedTLS(address, err)
	}
	return secured, nil
}

// established resets the backoff and the last error.
func (d *dialer) established() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials, d.last = 0, nil
}

func (d *dialer) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
}

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

// chance draws numbers that need not be secret. Each session has its own small generator,
// seeded by crypto/rand. So a test that replaces crypto/rand's source, as the simulation does,
// determines every random choice.
type chance struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newChance() *chance {
	var seed [16]byte
	_, _ = crypto.Read(seed[:]) // never fails, according to its documentation
	return &chance{rand: rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:]), binary.BigEndian.Uint64(seed[8:])))}
}

// below returns a duration in [0, limit). limit must be positive.
func (c *chance) below(limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rand.Int64N(int64(limit)))
}

func (c *chance) shuffle(list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// RandomBelow returns a random duration below limit. It spreads clients that wait at the same time.
func (w *Wire) RandomBelow(limit time.Duration) time.Duration { return w.dialer.chance.below(limit) }
