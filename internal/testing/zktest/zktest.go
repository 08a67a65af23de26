// Package zktest has what the tests of package zookeeper and of the packages below it share.
// These tests open sessions as a user does, with zookeeper.Open.
//
//   - [Embedded], [Open] and [OpenAt] give a test a server in this process and sessions.
//     [Everywhere] runs it on a real ZooKeeper too.
//   - [OnVirtualTime] runs a test in a bubble. [Piped] is a server for tests with and without one.
//     [Link] is a connection that the test breaks.
//   - [Scene] is a wait queue with contenders, and another client that creates and deletes
//     znodes as another library or an operator would.
//   - [Between] acts when the server has received a certain request.
//   - [CostOf], [Costs] and [Idle] count what the server does.
//   - [Move] resumes a session as another process would.
package zktest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Everywhere runs a test on the in-process server and on a real one, at a path of its own.
func Everywhere(t *testing.T, test func(t *testing.T, addr, path string)) {
	t.Run("embedded", func(t *testing.T) { test(t, Embedded(t).Addr(), "/"+rand.Text()) })
	t.Run("real", func(t *testing.T) { test(t, ensembletest.Shared(t).Addrs()[0], "/"+rand.Text()) })
}

// Bounded returns a context that ends when the test hangs.
func Bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
	t.Cleanup(cancel)
	return ctx
}

// Embedded returns an in-process server that is closed with the test.
func Embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	srv := must.Get(zkserver.Listen(zkserver.Config{MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: time.Minute}))(t)
	t.Cleanup(func() { must.Report(t, srv.Close()) })
	return srv
}

// Exists reports whether the server has a znode of the path.
func Exists(srv *zkserver.Server, path string) bool {
	return slices.ContainsFunc(srv.Tree(), func(n zkserver.Node) bool { return n.Path == path })
}

// Open opens a session that is closed with the test.
func Open(t *testing.T, srv *zkserver.Server) recipes.Client {
	t.Helper()
	return OpenAt(t, srv.Addr())
}

// OpenAt is [Open] for the server at an address.
func OpenAt(t *testing.T, addr string) recipes.Client {
	t.Helper()
	s := must.Get(zookeeper.Open(Bounded(t), config(addr)))(t)
	closeAtEnd(t, s)
	return s
}

func config(addr string) recipes.SessionConfig {
	return recipes.SessionConfig{Servers: []string{addr}, MaxPacket: 64 << 10}
}

func closeAtEnd(t *testing.T, s recipes.Client) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog.Patience)
		defer cancel()
		s.Close(ctx)
	})
}

// Raw opens a session of go-zookeeper, as another client.
func Raw(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	raw, _, err := zk.Connect([]string{addr}, watchdog.Patience, zk.WithLogInfo(false))
	must.Do(t, err)
	t.Cleanup(raw.Close)
	return raw
}

// Outcome is the result of a call.
type Outcome[T any] struct {
	Got T
	Err error
}

// Go makes a call in a goroutine, and delivers its result.
func Go[T any](ctx context.Context, call func(context.Context) (T, error)) <-chan Outcome[T] {
	done := make(chan Outcome[T], 1)
	go func() {
		got, err := call(ctx)
		done <- Outcome[T]{got, err}
	}()
	return done
}

// GoDo is [Go] for a call that returns only an error.
func GoDo(ctx context.Context, call func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	return done
}

// Waits makes a contender enter in a goroutine. It returns when the contender's znode
// exists. enter returns the call to make; that call must call joined.
func Waits[T any](ctx context.Context, enter func(joined func(recipes.Place)) func(context.Context) (T, error)) (recipes.Place, <-chan Outcome[T]) {
	joined := make(chan recipes.Place, 1)
	done := Go(ctx, enter(func(p recipes.Place) { joined <- p }))
	return <-joined, done
}
