package recipestest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// patience bounds a test. Only a broken run reaches it.
	patience = watchdog.Patience
	// brief is the timeout of a context that must end while a call waits. A call that does
	// not have to wait returns sooner, and the test fails.
	brief = 50 * time.Millisecond
	// lifetime is the timeout of sessions that must not expire.
	lifetime = 10 * time.Second
	// longLifetime is the timeout of plain ZooKeeper sessions, which must not lose their connection
	// on a busy machine. ClickHouse Keeper then continues no session, and its old versions do not know
	// the request by which go-zookeeper sets its watches again. A wait for one would not end.
	longLifetime = time.Minute
	// shortLifetime is the timeout of sessions that must expire. On a busy machine one can
	// expire before the test has begun: see openShort.
	shortLifetime = 500 * time.Millisecond
)

// fixture is the environment of one test: a root path of its own, a relay for each session, and
// a plain ZooKeeper connection that reads and changes znodes.
type fixture struct {
	testing.TB
	ctx     context.Context // ends when patience is over
	opener  recipes.Opener
	servers []string
	relays  *sync.Map // by session id
	root    string
	outside *zk.Conn
	insist  bool        // see Env
	keeper  func() bool // reports whether the servers are ClickHouse Keeper
	lacking bool        // the test was skipped because the servers do not support what it tests
}

func newFixture(t testing.TB, env Env) *fixture {
	servers := env.Servers(t)
	f := &fixture{
		TB:      t,
		ctx:     watchdog.Bounded(t),
		opener:  env.Open,
		servers: servers,
		relays:  new(sync.Map),
		insist:  env.insist,
		root:    env.Root + "/contract-" + uuid.NewString(),
	}
	f.outside = f.connect(servers)
	f.keeper = sync.OnceValue(func() bool { return !f.exists("/zookeeper") }) // only Keeper has no such znode
	// The ACL of a wait queue's path permits writes only to this published identity: see
	// docs/operating.md.
	f.must(f.outside.AddAuth("digest", []byte("zkrecipes:handoff")))
	return f
}

// connect opens a plain ZooKeeper session that uses no relay.
func (f *fixture) connect(servers []string) *zk.Conn {
	f.Helper()
	connected := make(chan struct{})
	conn, _, err := zk.Connect(servers, longLifetime, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.State == zk.StateHasSession && e.Type == zk.EventSession {
				select {
				case <-connected:
				default:
					close(connected)
				}
			}
		}))
	f.must(err)
	f.Cleanup(conn.Close)
	f.await(connected, "a plain ZooKeeper session")
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// open opens a session that is closed when the test ends.
func (f *fixture) open(change ...func(*recipes.SessionConfig)) recipes.Client {
	f.Helper()
	return must.Get(f.tryOpen(change...))(f)
}

func (f *fixture) tryOpen(change ...func(*recipes.SessionConfig)) (recipes.Client, error) {
	r := f.listen()
	cfg := recipes.SessionConfig{Servers: []string{r.Addr()}, SessionTimeout: lifetime}
	for _, c := range change {
		c(&cfg)
	}
	s, err := f.opener(f.ctx, cfg)
	if err != nil {
		return nil, err
	}
	f.relays.Store(s.ID(), r)
	f.Cleanup(func() {
		r.Restore()
		f.close(s)
	})
	return s, nil
}

// openShort opens a session that must expire, and calls take with it. If the session is lost
// before take returns, or before it is open, openShort tries again with twice the timeout.
func (f *fixture) openShort(take func(recipes.Client) error) recipes.Client {
	f.Helper()
	for timeout := shortLifetime; ; timeout *= 2 {
		s, err := f.tryOpen(withTimeout(timeout))
		if err == nil {
			err = take(s)
		}
		if !errors.Is(err, recipes.ErrSessionLost) || timeout > lifetime {
			f.must(err)
			return s
		}
	}
}

func withTimeout(d time.Duration) func(*recipes.SessionConfig) {
	return func(c *recipes.SessionConfig) { c.SessionTimeout = d }
}

// close closes a session in any state.
func (f *fixture) close(s recipes.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), 5*time.Second) // clean-up: the server may not answer
	defer cancel()
	_ = s.Close(ctx) // some tests end with a lost session
}

// briefly returns a context that ends while a call waits.
func (f *fixture) briefly() context.Context {
	ctx, cancel := context.WithTimeout(f.ctx, brief)
	f.Cleanup(cancel)
	return ctx
}

// ended returns a context that has ended.
func (f *fixture) ended() context.Context {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	return ctx
}

// path returns a path below the root of this test. Its parents do not exist.
func (f *fixture) path(elements ...string) string {
	return f.root + "/" + strings.Join(elements, "/")
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// failIf fails the test if wrong is true. The test continues.
func (f *fixture) failIf(wrong bool, format string, args ...any) {
	f.Helper()
	if wrong {
		f.Errorf(format, args...)
	}
}

// here returns the sentinel on these servers. On ClickHouse Keeper, a session that a test expires was
// not continued: see expire.
func (f *fixture) here(sentinel error) error {
	switch {
	case sentinel == recipes.ErrExpired && f.keeper():
		return recipes.ErrNotContinued
	case sentinel == recipes.ErrNotContinued && f.keeper():
		return recipes.ErrExpired
	}
	return sentinel
}

// is checks that err matches all sentinels.
func (f *fixture) is(err error, sentinels ...error) {
	f.Helper()
	for _, want := range sentinels {
		want = f.here(want)
		if !errors.Is(err, want) {
			f.Errorf("error %v; want a match of %q", err, want)
		}
	}
}

// isNot checks that err matches none of the sentinels.
func (f *fixture) isNot(err error, sentinels ...error) {
	f.Helper()
	for _, wrong := range sentinels {
		if wrong = f.here(wrong); errors.Is(err, wrong) {
			f.Errorf("error %v matches %q; want no match", err, wrong)
		}
	}
}

// await waits until the channel is closed or has a value. A wait that is too long fails the test.
func (f *fixture) await(ch <-chan struct{}, what string) {
	f.Helper()
	select {
	case <-ch:
	case <-f.ctx.Done():
		f.Fatalf("%s: nothing until the end of the test", what)
	}
}

// held checks that the grant is not known to be lost.
func (f *fixture) held(g recipes.Grant) {
	f.Helper()
	select {
	case <-g.Done():
		f.Errorf("lost: %v; want it held", g.Err())
	default:
		if err := g.Err(); err != nil {
			f.Errorf("Err = %v; want nil", err)
		}
	}
}

// lost waits until the grant is lost, and checks the reasons.
func (f *fixture) lost(g recipes.Grant, reasons ...error) {
	f.Helper()
	f.await(g.Done(), "the loss of the grant")
	f.is(g.Err(), append(reasons, recipes.ErrNotHeld)...)
}

// receive returns the next value of a channel.
func receive[T any](f *fixture, ch <-chan T, what string) T {
	f.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			f.Fatalf("%s: the channel is closed", what)
		}
		return v
	case <-f.ctx.Done():
		f.Fatalf("%s: nothing until the end of the test", what)
		panic("unreachable")
	}
}

// drained waits until the channel is closed, and drops its values.
func drained[T any](f *fixture, ch <-chan T, what string) {
	f.Helper()
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		case <-f.ctx.Done():
			f.Fatalf("%s was not closed", what)
		}
	}
}
