package ensembles_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) { leaktest.Main(ensembletest.Owner{Tests: m}) }

// tick is the servers' tick, ZooKeeper's default. The session timeout of most tests is the
// smallest that package lease allows behind every server, which is also the hardest case. It must
// be long enough for a holder to move to another server on a busy machine.
const (
	tick    = 2 * time.Second
	timeout = 4 * tick
	long    = 30 * time.Second // of a session that must outlive elections
)

// notBefore35 skips a test of what ZooKeeper 3.4 does not have.
func notBefore35(t *testing.T) {
	t.Helper()
	ensembletest.Require(t)
	if found := must.Get(ensemble.Find())(t); strings.HasPrefix(found.Version, "3.4.") {
		t.Skipf("SKIPPED: %s does not have what this test sets", found)
	}
}

func config(servers int) ensemble.Config {
	cfg := ensembletest.Quick(servers)
	cfg.TickTime = tick
	return cfg
}

// gate is the network of one client: it leads to one server, which the test chooses.
type gate struct {
	answered chan struct{} // after an answer

	mu     sync.Mutex
	target string // "": to none
	conns  []net.Conn
}

func gateTo(s *ensemble.Server) *gate {
	return &gate{target: s.Addr(), answered: make(chan struct{}, 1)}
}

// move breaks all connections. Later ones lead to the target, or nowhere if it is "".
func (g *gate) move(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

func (g *gate) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	g.mu.Lock()
	target := g.target
	g.mu.Unlock()
	if target == "" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, target)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target != target {
		c.Close()
	}
	g.conns = append(g.conns, c)
	return &teller{c, g.answered}, nil
}

// teller reports each answer. A session that holds something sends syncs, and no pings.
type teller struct {
	net.Conn
	answered chan struct{}
}

func (c *teller) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return n, err
}

// open opens a session through g, with the given timeout.
func open(t *testing.T, g *gate, timeout time.Duration) recipes.Client {
	t.Helper()
	s := must.Get(zookeeper.Dialer(g.dial).Open(t.Context(), recipes.SessionConfig{
		Servers: []string{"server"}, SessionTimeout: timeout, MaxPacket: 64 << 10,
	}))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the servers may be down
		defer cancel()
		s.Close(ctx)
	})
	return s
}

// pair is a holder of a lock and the next contender, each with a network of its own.
type pair struct {
	*gate // the holder's
	holder,
	waiter recipes.Client
	hold    recipes.Hold
	granted chan time.Time // to the waiter
}

func contend(t *testing.T, holderAt, waiterAt *ensemble.Server, timeout time.Duration) *pair {
	t.Helper()
	p := &pair{gate: gateTo(holderAt), granted: make(chan time.Time, 1)}
	p.holder, p.waiter = open(t, p.gate, timeout), open(t, gateTo(waiterAt), long)
	p.hold = zktest.Acquire(t, p.holder)
	joined := make(chan struct{})
	l := must.Get(p.waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
	go func() {
		_, err := l.Acquire(t.Context())
		if at := time.Now(); err == nil {
			p.granted <- at
		} else {
			t.Error(err)
		}
	}()
	select {
	case <-joined:
	case <-zktest.Bounded(t).Done():
		t.Fatal("the waiter does not join")
	}
	return p
}

// cut breaks the holder's connections. It makes no others.
func (p *pair) cut() { p.move("") }

// loses makes a fault just after the holder's server has answered. It checks that the
// holder's Done closes before the next contender is granted.
func (p *pair) loses(t *testing.T, fault func()) {
	t.Helper()
	ctx := zktest.Bounded(t)
	for range 2 {
		select {
		case <-p.answered:
		case <-p.hold.Done():
			t.Fatalf("lost before the fault: %v", p.hold.Err())
		case <-ctx.Done():
			t.Fatal("no answer")
		}
	}
	began := time.Now()
	fault()
	closed := p.lost(t, ctx)
	next := p.grant(t, ctx)
	t.Logf("Done closed %v after the fault, the next contender was granted %v after it", closed.Sub(began), next.Sub(began))
	if !closed.Before(next) {
		t.Errorf("Done closed %v after the next contender was granted", closed.Sub(next))
	}
}

// grant waits until the next contender is granted.
func (p *pair) grant(t *testing.T, ctx context.Context) (at time.Time) {
	t.Helper()
	select {
	case at = <-p.granted:
	case <-ctx.Done():
		t.Fatal("the next contender is not granted")
	}
	return at
}

func (p *pair) lost(t *testing.T, ctx context.Context) time.Time {
	t.Helper()
	select {
	case <-p.hold.Done():
	case <-ctx.Done():
		t.Fatal("the holder is not notified")
	}
	return time.Now()
}

// moves moves the holder to another server, and checks that it keeps its hold.
func (p *pair) moves(t *testing.T, to *ensemble.Server) {
	t.Helper()
	p.move(to.Addr())
	err := p.hold.Write(t.Context())                // sends a check of the znode, when connected
	for errors.Is(err, recipes.ErrUnknownOutcome) { // the move may close the connection under it
		err = p.hold.Write(t.Context())
	}
	must.Do(t, err)
	if stats := must.Get(p.holder.Stats(t.Context()))(t); stats.Reconnects == 0 {
		t.Error("the holder has not moved")
	}
}

// start starts an ensemble, and returns its leader, two other servers and its observers.
func start(t *testing.T, cfg ensemble.Config) (leader *ensemble.Server, followers, observers []*ensemble.Server) {
	t.Helper()
	e := ensembletest.Start(t, cfg)
	leader = must.Get(e.Leader(t.Context()))(t)
	for i, s := range e.Servers() {
		switch {
		case i >= cfg.Servers:
			observers = append(observers, s)
		case s != leader:
			followers = append(followers, s)
		}
	}
	return leader, followers, observers
}
