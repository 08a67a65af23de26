package zktest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Scene is a path whose contenders have one session each. Its methods end the test if a step of
// the setup fails.
type Scene struct {
	*testing.T
	Ctx  context.Context
	Addr string
	Path string
	Raw  *zk.Conn // of another client
}

// OnBoth runs a case on the in-process server and on a real one.
func OnBoth(t *testing.T, f func(*Scene)) {
	run := func(t *testing.T, addr string) {
		f(&Scene{T: t, Ctx: Bounded(t), Addr: addr, Path: "/" + uuid.NewString(), Raw: Raw(t, addr)})
	}
	t.Run("embedded", func(t *testing.T) { run(t, Embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { run(t, ensembletest.Shared(t).Addrs()[0]) })
}

// OnEmbedded runs a case that needs the in-process server.
func OnEmbedded(t *testing.T, f func(*Scene, *zkserver.Server)) {
	srv := Embedded(t)
	OnServer(t, srv, func(s *Scene) { f(s, srv) })
}

// OnServer is [OnEmbedded] for a server that several cases share.
func OnServer(t *testing.T, srv *zkserver.Server, f func(*Scene)) {
	f(&Scene{T: t, Ctx: Bounded(t), Addr: srv.Addr(), Path: "/line", Raw: Raw(t, srv.Addr())})
}

// Session opens a session that is closed with the test.
func (s *Scene) Session() recipes.Client {
	s.Helper()
	opened := must.Get(zookeeper.Open(s.Ctx, config(s.Addr)))(s.T)
	s.Cleanup(func() { opened.Close(context.Background()) })
	return opened
}

// Contender is a contender for the lock of the path.
type Contender struct {
	Session recipes.Client
	Place   recipes.Place
	Cancel  context.CancelFunc
	Held    chan recipes.Hold
	failed  chan error
}

// Join makes a new session contend by handoff. It returns when the contender waits or holds.
func (s *Scene) Join() *Contender {
	s.Helper()
	return s.JoinWith(s.Session(), recipes.Handoff)
}

// JoinWith is [Scene.Join] for a session and a strategy.
func (s *Scene) JoinWith(session recipes.Client, strategy recipes.Strategy) *Contender {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Ctx)
	s.Cleanup(cancel)
	c := &Contender{Session: session, Cancel: cancel, Held: make(chan recipes.Hold, 1), failed: make(chan error, 1)}
	joined := make(chan recipes.Place, 1)
	l := must.Get(session.Lock(s.Path, recipes.LockConfig{Strategy: strategy, Joined: func(p recipes.Place) { joined <- p }}))(s.T)
	go func() {
		hold, err := l.Acquire(ctx)
		if err != nil {
			c.failed <- err
			return
		}
		c.Held <- hold
	}()
	select {
	case c.Place = <-joined:
	case err := <-c.failed:
		s.Fatal(err)
	}
	return c
}

// Hold waits until the contender holds.
func (s *Scene) Hold(c *Contender) recipes.Hold {
	s.Helper()
	select {
	case h := <-c.Held:
		return h
	case err := <-c.failed:
		s.Fatal(err)
	case <-s.Ctx.Done():
		s.Fatal("not granted")
	}
	return nil
}

// Failure waits until the contender fails, and returns why.
func (s *Scene) Failure(c *Contender) error {
	s.Helper()
	select {
	case <-c.Held:
		s.Fatal("granted")
	case err := <-c.failed:
		return err
	case <-s.Ctx.Done():
		s.Fatal("the contender neither holds nor fails")
	}
	return nil
}

// Release releases a hold.
func (s *Scene) Release(h recipes.Hold) {
	s.Helper()
	must.Do(s.T, h.Release(s.Ctx))
}

// Lost waits until a hold ends, gives its znode back, and returns why it ended.
func (s *Scene) Lost(h recipes.Hold) error {
	s.Helper()
	select {
	case <-h.Done():
	case <-s.Ctx.Done():
		s.Error("the hold has not ended")
	}
	err := h.Err()
	if released := h.Release(s.Ctx); !errors.Is(released, err) && released != nil {
		s.Errorf("release: %v", released)
	}
	return err
}

// Counters returns what the contender's session has counted.
func (s *Scene) Counters(c *Contender) recipes.Stats {
	s.Helper()
	return must.Get(c.Session.Stats(s.Ctx))(s.T)
}

// Fallbacks waits until the contender has listed the wait queue n times instead of being
// handed the lock. It sends a request between two checks, so other goroutines run.
func (s *Scene) Fallbacks(c *Contender, n int64) {
	s.Helper()
	for s.Counters(c).Fallbacks < n {
		if _, _, err := s.Raw.Exists(s.Path); err != nil || s.Ctx.Err() != nil {
			s.Fatalf("%d fallbacks, want %d (%v)", s.Counters(c).Fallbacks, n, err)
		}
	}
}

// Make creates a znode as another library would, with its missing parents.
func (s *Scene) Make(path string, data []byte, flags int32) string {
	s.Helper()
	for i, c := range path {
		if i > 0 && c == '/' {
			if _, err := s.Raw.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				s.Fatal(err)
			}
		}
	}
	return must.Get(s.Raw.Create(path, data, flags, zk.WorldACL(zk.PermAll)))(s.T)
}

// Contender creates the znode of a contender of another library. Its name is name, followed by a
// sequence number.
func (s *Scene) Contender(name string) string {
	s.Helper()
	return s.Make(s.Path+"/"+name, nil, zk.FlagEphemeral|zk.FlagSequence)
}

// Remove deletes the znodes of contenders, and the path with them.
func (s *Scene) Remove(znodes ...string) {
	s.Helper()
	var ops []any
	for _, znode := range append(znodes, s.Path) {
		ops = append(ops, &zk.DeleteRequest{Path: znode, Version: -1})
	}
	must.Get(s.Raw.Multi(ops...))(s.T)
}

// Exists reports whether a znode exists. Since 3.9, ZooKeeper refuses to say so of a znode that
// may not be read, but only if it exists.
func (s *Scene) Exists(znode string) bool {
	s.Helper()
	there, _, err := s.Raw.Exists(znode)
	if errors.Is(err, zk.ErrNoAuth) {
		return true
	}
	must.Do(s.T, err)
	return there
}

// Data returns the data of a znode.
func (s *Scene) Data(path string) []byte {
	s.Helper()
	data, _, err := s.Raw.Get(path)
	must.Do(s.T, err)
	return data
}

// Children returns the names of a znode's children, sorted. A path that does not exist has
// none.
func (s *Scene) Children(path string) []string {
	s.Helper()
	names, _, err := s.Raw.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// Alone waits until the path has only that child.
func (s *Scene) Alone(znode string) {
	s.Helper()
	for {
		names, _, changed, err := s.Raw.ChildrenW(s.Path)
		must.Do(s.T, err)
		if len(names) == 1 && s.Path+"/"+names[0] == znode {
			return
		}
		select {
		case <-changed:
		case <-s.Ctx.Done():
			s.Fatalf("left behind: %q", names)
		}
	}
}

// Is checks that an error matches another one.
func (s *Scene) Is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}
