package recipestest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// patience bounds a test. It only ends a broken run.
	patience = 30 * time.Second
	// brief is a context that is meant to end: long enough for a request that
	// can be answered, which then shows.
	brief = 50 * time.Millisecond
	// lifetime is the timeout of sessions that are not meant to expire.
	lifetime = 10 * time.Second
	// shortLifetime is the timeout of sessions that are.
	shortLifetime = 500 * time.Millisecond
)

// fixture is one test with its proxy, its own root path and a look from outside.
type fixture struct {
	testing.TB
	ctx     context.Context // ends with patience
	opener  recipes.Opener
	servers []string
	proxy   *proxy
	root    string
	outside *zk.Conn
}

func newFixture(t testing.TB, env Env) *fixture {
	servers := env.Servers(t)
	proxy, err := newProxy(servers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	f := &fixture{
		TB:      t,
		ctx:     ctx,
		opener:  env.Open,
		servers: servers,
		proxy:   proxy,
		root:    "/contract-" + uuid.NewString(),
	}
	f.outside = f.connect(servers)
	return f
}

// connect is a plain ZooKeeper session, past the proxy.
func (f *fixture) connect(servers []string) *zk.Conn {
	f.Helper()
	connected := make(chan struct{})
	conn, _, err := zk.Connect(servers, lifetime, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
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
func (f *fixture) open(change ...func(*recipes.Config)) recipes.Session {
	f.Helper()
	cfg := recipes.Config{Servers: []string{f.proxy.addr}, SessionTimeout: lifetime}
	for _, c := range change {
		c(&cfg)
	}
	s, err := f.opener(f.ctx, cfg)
	f.must(err)
	f.Cleanup(func() { f.close(s) })
	return s
}

func withTimeout(d time.Duration) func(*recipes.Config) {
	return func(c *recipes.Config) { c.SessionTimeout = d }
}

// close closes a session, whatever state it and its connection are in.
func (f *fixture) close(s recipes.Session) {
	f.proxy.restore(s.ID())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), 5*time.Second)
	defer cancel()
	_ = s.Close(ctx) // some tests leave it lost
}

// briefly returns a context that is meant to end while something waits.
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

// path is a path of this test's own. Its parents do not exist.
func (f *fixture) path(elements ...string) string {
	return f.root + "/" + strings.Join(elements, "/")
}

// Assertions.

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// is checks that err matches all of the sentinels.
func (f *fixture) is(err error, sentinels ...error) {
	f.Helper()
	for _, want := range sentinels {
		if !errors.Is(err, want) {
			f.Errorf("error %v; want one that matches %q", err, want)
		}
	}
}

func (f *fixture) isNot(err error, sentinels ...error) {
	f.Helper()
	for _, wrong := range sentinels {
		if errors.Is(err, wrong) {
			f.Errorf("error %v matches %q; want one that does not", err, wrong)
		}
	}
}

// await waits until the channel is closed.
func (f *fixture) await(ch <-chan struct{}, what string) {
	f.Helper()
	select {
	case <-ch:
	case <-f.ctx.Done():
		f.Fatalf("%s did not come", what)
	}
}

// standing checks that nothing is known against the grant.
func (f *fixture) standing(g recipes.Grant) {
	f.Helper()
	select {
	case <-g.Lost():
		f.Errorf("lost: %v; want it to stand", g.Err())
	default:
		if err := g.Err(); err != nil {
			f.Errorf("Err = %v; want nil", err)
		}
	}
}

// lost waits until the grant is lost, for that reason.
func (f *fixture) lost(g recipes.Grant, reasons ...error) {
	f.Helper()
	f.await(g.Lost(), "the loss of the grant")
	f.is(g.Err(), append(reasons, recipes.ErrNotHeld)...)
}

// receive takes the next value of a channel.
func receive[T any](f *fixture, ch <-chan T, what string) T {
	f.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			f.Fatalf("%s: the channel is closed", what)
		}
		return v
	case <-f.ctx.Done():
		f.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// drained waits until the channel is closed, passing over what comes before.
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

// pending is a call that runs in another goroutine.
type pending[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func start[T any](f *fixture, call func() (T, error)) *pending[T] {
	p := &pending[T]{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value, p.err = call()
	}()
	f.Cleanup(func() {
		select {
		case <-p.done:
		case <-time.After(patience):
			f.Error("a call goes on after its test has ended")
		}
	})
	return p
}

// startErr is start for a call that returns nothing but an error.
func startErr(f *fixture, call func() error) *pending[struct{}] {
	return start(f, func() (struct{}, error) { return struct{}{}, call() })
}

func (p *pending[T]) result(f *fixture) (T, error) {
	f.Helper()
	f.await(p.done, "the return of the call")
	return p.value, p.err
}

func (p *pending[T]) value1(f *fixture) T {
	f.Helper()
	v, err := p.result(f)
	f.must(err)
	return v
}

// blocked checks that the call has not returned.
func (p *pending[T]) blocked(f *fixture) {
	f.Helper()
	select {
	case <-p.done:
		f.Fatalf("the call returned (%v, %v); want it to wait", p.value, p.err)
	default:
	}
}

// From outside.

// children returns the names of a znode's children, none if it does not exist.
func (f *fixture) children(path string) []string {
	f.Helper()
	names, _, err := f.outside.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		f.Fatal(err)
	}
	names = contenders(names)
	slices.Sort(names)
	return names
}

// contenders leaves out the places of acknowledgements and of guards: containers
// that the server removes some time after they have become empty.
func contenders(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "acks" || strings.HasPrefix(name, "guards-") })
}

// awaitChildren waits until a znode has exactly so many children.
func (f *fixture) awaitChildren(path string, n int) {
	f.Helper()
	for {
		names, _, changed, err := f.outside.ChildrenW(path)
		if errors.Is(err, zk.ErrNoNode) && n == 0 {
			return
		}
		f.must(err)
		if len(contenders(names)) == n {
			return
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			f.Fatalf("%s has children %v; want %d", path, names, n)
		}
	}
}

// awaitNode waits until a znode exists, or does not.
func (f *fixture) awaitNode(path string, want bool) {
	f.Helper()
	for {
		exists, _, changed, err := f.outside.ExistsW(path)
		f.must(err)
		if exists == want {
			return
		}
		select {
		case <-changed:
		case <-f.ctx.Done():
			f.Fatalf("%s: exists is %v; want %v", path, exists, want)
		}
	}
}

func (f *fixture) exists(path string) bool {
	f.Helper()
	exists, _, err := f.outside.Exists(path)
	f.must(err)
	return exists
}

// read returns a znode's data and record.
func (f *fixture) read(path string) (string, *zk.Stat) {
	f.Helper()
	data, stat, err := f.outside.Get(path)
	if err != nil {
		f.Fatalf("read %s: %v", path, err)
	}
	return string(data), stat
}

// create creates a persistent znode with its parents, unless it exists.
func (f *fixture) create(path, data string) {
	f.Helper()
	for at := 1; ; {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			break
		}
		at += next
		_, err := f.outside.Create(path[:at], nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			f.Fatal(err)
		}
		at++
	}
	_, err := f.outside.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		f.Fatalf("create %s: %v", path, err)
	}
}

// remove deletes a znode, as an operator would.
func (f *fixture) remove(path string) {
	f.Helper()
	if err := f.outside.Delete(path, -1); err != nil {
		f.Fatalf("delete %s: %v", path, err)
	}
}
