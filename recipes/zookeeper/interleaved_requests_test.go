package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// interleaving is something that one session does, and what another does just before one
// of its requests.
type interleaving struct {
	name    string
	at      func(zkserver.Request) bool
	prepare func(s *interleaved) (act func(context.Context) error, meanwhile func() error)
	want    error
}

type interleaved struct {
	*testing.T
	ctx        context.Context
	srv        *zkserver.Server
	one, other recipes.Session
}

// remove deletes a znode, as another program would.
func (s *interleaved) remove(path string) error {
	b, err := s.other.Barrier(path)
	if err != nil {
		return err
	}
	return b.Remove(s.ctx)
}

// write replaces a znode's data, as another program would.
func (s *interleaved) write(path, data string) error {
	return s.change(recipes.Set(path, []byte(data), recipes.AnyVersion))
}

func (s *interleaved) change(op recipes.Op) error {
	l, err := s.other.Lock("/writing", recipes.LockConfig{Strategy: recipes.Predecessor})
	if err != nil {
		return err
	}
	h, err := l.Acquire(s.ctx)
	if err != nil {
		return err
	}
	return errors.Join(h.Write(s.ctx, op), h.Release(s.ctx))
}

// reading is a request of a kind for a path that has that in it.
func reading(op zkserver.Op, in string) func(zkserver.Request) bool {
	return func(r zkserver.Request) bool { return r.Op == op && strings.Contains(r.Path, in) }
}

// What has changed between two requests of one call is noticed, and the call goes on, or
// says what has become of it.
func TestWhatChangesBetweenTwoRequests(t *testing.T) {
	for _, i := range slices.Concat(interleavedLines(), interleavedPermits(), interleavedValues()) {
		t.Run(i.name, i.run)
	}
}

func (i interleaving) run(t *testing.T) {
	t.Parallel()
	srv := embedded(t)
	s := &interleaved{T: t, ctx: bounded(t), srv: srv, one: open(t, srv), other: open(t, srv)}
	act, meanwhile := i.prepare(s)
	met := between(srv, s.one, i.at, func() {
		if err := meanwhile(); err != nil {
			t.Errorf("in the other session: %v", err)
		}
	})
	err := act(s.ctx)
	if !met() {
		t.Fatalf("the case was not met: %v", err)
	}
	if !errors.Is(err, i.want) {
		t.Errorf("told %v, want %v", err, i.want)
	}
}

func interleavedLines() []interleaving {
	shared := func(s recipes.Session, t *testing.T) recipes.SharedLock {
		return must[recipes.SharedLock](t)(s.SharedLock("/l", recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond}))
	}
	priority := func(s recipes.Session, t *testing.T) recipes.PriorityLock {
		return must[recipes.PriorityLock](t)(s.PriorityLock("/l", recipes.PriorityLockConfig{}))
	}
	election := func(s recipes.Session, t *testing.T) recipes.Election {
		return must[recipes.Election](t)(s.Election("/l", recipes.ElectionConfig{Strategy: recipes.Predecessor}))
	}
	return []interleaving{
		{"a try to read, and the writer releases", reading(zkserver.OpGetData, "-write-"), func(s *interleaved) (func(context.Context) error, func() error) {
			h := must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx))
			l := shared(s.one, s.T)
			return func(ctx context.Context) error { _, err := l.TryRead(ctx); return err }, func() error { return h.Release(s.ctx) }
		}, nil},
		{"a look for the leader, who resigns", reading(zkserver.OpGetData, "/l/"), func(s *interleaved) (func(context.Context) error, func() error) {
			leads := must[recipes.Leadership](s.T)(election(s.other, s.T).Campaign(s.ctx, nil))
			e := election(s.one, s.T)
			return func(ctx context.Context) error { _, err := e.Leader(ctx); return err }, func() error { return leads.Resign(s.ctx) }
		}, recipes.ErrNoLeader},
		{"another acknowledgement, and the first is deleted", func() func(zkserver.Request) bool {
			multis := 0
			return func(r zkserver.Request) bool {
				if r.Op == zkserver.OpMulti {
					multis++
				}
				return multis == 2 // the first has found the acknowledgement
			}
		}(), func(s *interleaved) (func(context.Context) error, func() error) {
			leads := must[recipes.Leadership](s.T)(election(s.one, s.T).Campaign(s.ctx, nil))
			if err := leads.Acknowledge(s.ctx, []byte("first")); err != nil {
				s.Fatal(err)
			}
			return func(ctx context.Context) error {
					if err := leads.Acknowledge(ctx, []byte("second")); err != nil {
						return err
					}
					if l, err := election(s.other, s.T).Leader(ctx); err != nil || string(l.Acknowledgement) != "second" {
						s.Errorf("it has acknowledged with %q, %v", l.Acknowledgement, err)
					}
					return nil
				}, func() error {
					for _, n := range s.srv.Tree() {
						if strings.HasPrefix(n.Path, "/l/acks/") {
							return s.remove(n.Path)
						}
					}
					return errors.New("there is no acknowledgement")
				}
		}, nil},
		{"a claim that is deleted before it is looked at", reading(zkserver.OpExists, "-writing-"), func(s *interleaved) (func(context.Context) error, func() error) {
			l := priority(s.one, s.T)
			return func(ctx context.Context) error { _, err := l.AcquireWrite(ctx); return err }, func() error {
				for _, n := range s.srv.Tree() {
					if strings.Contains(n.Path, "-writing-") {
						return s.remove(n.Path)
					}
				}
				return errors.New("there is no claim")
			}
		}, recipes.ErrRemoved},
		{"a hand-off by one whose znode is deleted", is(zkserver.OpMulti), handOffs(priority, func(s *interleaved, h recipes.PriorityHold) error { return s.remove(h.Znode()) }), recipes.ErrRemoved},
		{"a hand-off to one whose znode is written", is(zkserver.OpMulti), handOffs(priority, func(s *interleaved, _ recipes.PriorityHold) error {
			for _, n := range s.srv.Tree() {
				if strings.Contains(n.Path, "-write-") {
					return s.write(n.Path, "x")
				}
			}
			return errors.New("nobody waits")
		}), nil},
		{"a hand-off to one whose znode is deleted", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			var hold recipes.PriorityHold
			act, meanwhile := handOffs(priority, func(s *interleaved, h recipes.PriorityHold) error {
				hold = h
				for _, n := range s.srv.Tree() {
					if strings.Contains(n.Path, "-write-") {
						return s.remove(n.Path)
					}
				}
				return errors.New("nobody waits")
			})(s)
			return func(ctx context.Context) error {
				err := act(ctx)
				if held := hold.Write(ctx); held != nil {
					s.Errorf("the holder does not hold any more: %v", held)
				}
				return err
			}, meanwhile
		}, recipes.ErrNoNode},
		{"a downgrade by one whose znode is deleted", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			h := must[recipes.SharedHold](s.T)(shared(s.one, s.T).AcquireWrite(s.ctx))
			return h.Downgrade, func() error { return s.remove(h.Znode()) }
		}, recipes.ErrRemoved},
		{"a downgrade, and a request to give way", is(zkserver.OpMulti), func(s *interleaved) (func(context.Context) error, func() error) {
			h := must[recipes.SharedHold](s.T)(shared(s.one, s.T).AcquireWrite(s.ctx))
			return func(ctx context.Context) error {
				if err := h.Downgrade(ctx); err != nil {
					return err
				}
				select {
				case <-h.Revoked():
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}, func() error { return shared(s.other, s.T).Revoke(s.ctx, h.Znode()) }
		}, nil},
		{"a revocation by force, and the holder releases", is(zkserver.OpGetData), revokes(shared, func(s *interleaved, h recipes.SharedHold) error { return h.Release(s.ctx) }), nil},
		{"a revocation by force, and the holder releases once asked", is(zkserver.OpMulti), revokes(shared, func(s *interleaved, h recipes.SharedHold) error { return h.Release(s.ctx) }), nil},
		{"a revocation by force that is taken back", func() func(zkserver.Request) bool {
			multis := 0
			return func(r zkserver.Request) bool {
				if r.Op == zkserver.OpMulti {
					multis++
				}
				return multis == 1 && r.Op == zkserver.OpGetData // the one that watches for its end
			}
		}(), revokes(shared, func(s *interleaved, h recipes.SharedHold) error {
			return s.write(h.Znode(), "zkrecipes: revocable grace=1ms\n")
		}), recipes.ErrBadVersion},
	}
}

func handOffs(priority func(recipes.Session, *testing.T) recipes.PriorityLock, meanwhile func(*interleaved, recipes.PriorityHold) error) func(*interleaved) (func(context.Context) error, func() error) {
	return func(s *interleaved) (func(context.Context) error, func() error) {
		h := must[recipes.PriorityHold](s.T)(priority(s.one, s.T).AcquireWrite(s.ctx))
		joined := make(chan recipes.Place, 1)
		waits := must[recipes.PriorityLock](s.T)(s.other.PriorityLock("/l", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }}))
		ctx, cancel := context.WithCancel(s.ctx)
		ended := make(chan struct{})
		s.Cleanup(func() { cancel(); <-ended })
		go func() { defer close(ended); waits.AcquireWrite(ctx) }()
		successor := <-joined
		return func(ctx context.Context) error { return h.HandOff(ctx, successor.Znode) }, func() error { return meanwhile(s, h) }
	}
}

func revokes(shared func(recipes.Session, *testing.T) recipes.SharedLock, meanwhile func(*interleaved, recipes.SharedHold) error) func(*interleaved) (func(context.Context) error, func() error) {
	return func(s *interleaved) (func(context.Context) error, func() error) {
		h := must[recipes.SharedHold](s.T)(shared(s.other, s.T).AcquireWrite(s.ctx))
		l := shared(s.one, s.T)
		return func(ctx context.Context) error { return l.RevokeForced(ctx, h.Znode()) }, func() error { return meanwhile(s, h) }
	}
}
