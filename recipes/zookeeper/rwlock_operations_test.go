package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// revocable is a lock whose holders can be revoked.
type revocable interface {
	Revoke(context.Context, string) error
	RevokeForced(context.Context, string) error
}

type revocableHold interface {
	recipes.Hold
	Revoked() <-chan struct{}
}

// revocations are operations that ask a holder of the other session to give way.
func revocations(of string, at func(s *stage, in recipes.Client) (revocable, func(context.Context) (revocableHold, error))) []operation {
	held := func(s *stage) (revocable, revocableHold) {
		lock, _ := at(s, s.victim)
		_, acquire := at(s, s.other)
		return lock, must.Get(acquire(s.ctx))(s.T)
	}
	return []operation{
		{of + ".Revoke", func(s *stage) doing {
			lock, theirs := held(s)
			revoked := theirs.Revoked()
			return doing{
				act:    func(ctx context.Context) error { return lock.Revoke(ctx, theirs.Znode()) },
				denied: []denial{{znode: theirs.Znode(), perms: noWrite}},
				after: func() error {
					if s.lost() { // before the victim has asked, or after that
						return theirs.Release(s.ctx)
					}
					return errors.Join(signalled(revoked)(s.ctx), theirs.Release(s.ctx))
				},
			}
		}},
		{of + ".RevokeForced", func(s *stage) doing {
			lock, theirs := held(s)
			revoked, done := theirs.Revoked(), theirs.Done()
			again := 0
			takenBack := func() error { return s.write(theirs.Znode(), "zkrecipes: revocable grace=1s\n") }
			return doing{
				act: func(ctx context.Context) error {
					err := lock.RevokeForced(ctx, theirs.Znode())
					if lost := theirs.Err(); lost != nil && !errors.Is(lost, recipes.ErrRevoked) && !errors.Is(lost, recipes.ErrReleased) {
						s.Errorf("Err of the holder is %v", lost)
					}
					return err
				},
				denied: []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "the holder releases", at: zktest.Op(zkserver.OpGetData), do: func() error { return theirs.Release(s.ctx) }},
					{name: "the holder releases once asked", at: zktest.Op(zkserver.OpMulti), do: func() error { return theirs.Release(s.ctx) }},
					{name: "it is taken back", at: func(r zkserver.Request) bool {
						if r.Op == zkserver.OpMulti {
							again++
						}
						return again == 1 && r.Op == zkserver.OpGetData // the read that sets the watch for the end of the hold
					}, do: takenBack, want: recipes.ErrBadVersion},
					{name: "it is taken back at the last moment", at: zktest.Nth(2, func(r zkserver.Request) bool { // the first write is the request to release
						return (r.Op == zkserver.OpMulti || r.Op == zkserver.OpDelete) && strings.HasPrefix(r.Path, theirs.Znode())
					}), do: takenBack, want: recipes.ErrBadVersion, then: func() { s.ok(theirs.Write(s.ctx)) }},
				},
				after: func() error {
					if s.lost() {
						return nil
					}
					if err := errors.Join(signalled(revoked)(s.ctx), signalled(done)(s.ctx)); err != nil {
						return err
					}
					if lost := theirs.Err(); !errors.Is(lost, recipes.ErrRevoked) {
						return fmt.Errorf("Err of the holder is %v", lost)
					}
					return nil
				},
			}
		}},
		{of + ".AcquireWrite, asked to give way", func(s *stage) doing {
			_, acquire := at(s, s.victim)
			lock, _ := at(s, s.other)
			mine := must.Get(acquire(s.ctx))(s.T)
			return doing{
				act: func(ctx context.Context) error {
					select {
					case <-mine.Revoked():
						return nil
					case <-mine.Done():
						return mine.Err()
					case <-ctx.Done():
						return ctx.Err()
					}
				},
				happen: func() error {
					if err := lock.Revoke(s.ctx, mine.Znode()); err != nil && s.victim.Err() == nil && !s.expires {
						return err
					}
					return nil
				},
				end: func() error { return mine.Release(s.ctx) },
			}
		}},
	}
}

func sharedLockWays() []way {
	shares := map[recipes.Dialect][]string{
		recipes.ZooKeeper: {"our reader", "our writer"},
		recipes.Curator:   {"Curator's reader", "Curator's writer"},
		recipes.Kazoo:     {"kazoo's reader", "kazoo's lock"},
	}
	uses := []use{
		{held, options{Revocable: true}},
		{operated, options{Strategy: recipes.Herd}}, {operated, options{Strategy: recipes.Predecessor}},
	}
	read := wayOf("shared lock for reading", way{shares: shares, uses: append(uses[:3:3],
		use{operated, options{Dialect: recipes.Curator}}, use{operated, options{Dialect: recipes.Kazoo}})}, nil)
	write := wayOf("shared lock for writing", way{shares: shares, uses: append(uses[:3:3], use{moved, options{}})}, nil)
	return rivals(read, write)
}

func priorityLockWays() []way {
	shares := map[recipes.Dialect][]string{recipes.ZooKeeper: {"our waiter with a priority", "our holder with a priority"}}
	uses := []use{
		{held, options{}},
		{operated, options{Strategy: recipes.Herd, Revocable: true}}, {operated, options{Strategy: recipes.Predecessor, Revocable: true}},
	}
	revocable := func(o *options) {
		if o.Revocable {
			o.Grace, o.Priority, o.Ask = time.Second, 5, true
		}
	}
	read := wayOf("priority lock for reading", way{shares: shares, uses: uses}, revocable)
	write := wayOf("priority lock for writing", way{shares: shares, uses: append(uses[:3:3], use{moved, options{}})}, revocable)
	return rivals(read, write)
}

func sharedLockOperations() []operation {
	written := func(s *stage, in recipes.Client) recipes.SharedHold {
		return must.Get(s.shared(in).AcquireWrite(s.ctx))(s.T)
	}
	besideDowngraded := func(method string, acquire func(recipes.SharedLock, context.Context) (recipes.SharedHold, error)) operation {
		return operation{method + ", beside one that has downgraded", func(s *stage) doing {
			s.ok(written(s, s.other).Downgrade(s.ctx))
			return granting(s, func(ctx context.Context) (recipes.SharedHold, error) { return acquire(s.shared(s.victim), ctx) })
		}}
	}
	return append(revocations("SharedLock", func(s *stage, in recipes.Client) (revocable, func(context.Context) (revocableHold, error)) {
		l := s.shared(in)
		return l, func(ctx context.Context) (revocableHold, error) { return l.AcquireWrite(ctx) }
	}), operation{"SharedLock.TryRead, a writer that releases", func(s *stage) doing {
		theirs := written(s, s.other)
		return doing{
			act: func(ctx context.Context) error {
				_, err := s.shared(s.victim).TryRead(ctx)
				if errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
					return nil
				}
				return err
			},
			between: []meddling{{name: "the writer releases", at: zktest.Op(zkserver.OpGetData, "-write-"), do: func() error { return theirs.Release(s.ctx) }}},
		}
	}}, operation{"SharedHold.Downgrade", func(s *stage) doing {
		mine := written(s, s.victim)
		s.start(func(ctx context.Context) error { // granted at the latest when the writer has left
			h, err := s.shared(s.other).AcquireRead(ctx)
			if err != nil {
				return err
			}
			return h.Release(ctx)
		})
		calm()
		return doing{
			act: func(ctx context.Context) error {
				err := mine.Downgrade(ctx)
				if mine.Mode() != recipes.Reading && mine.Err() == nil {
					s.Error("the hold is not a read hold after Downgrade")
				}
				return err
			},
			lost:   []error{recipes.ErrNotHeld},
			denied: []denial{{znode: mine.Znode(), perms: noWrite, then: func() { s.ok(mine.Release(s.ctx)) }}},
			between: []meddling{
				{name: "its znode is deleted", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(mine.Znode()) }, want: recipes.ErrRemoved},
				{name: "it is asked to give way", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.shared(s.session()).Revoke(s.ctx, mine.Znode()) }, then: func() {
					s.ok(errors.Join(signalled(mine.Revoked())(s.ctx), mine.Release(s.ctx)))
				}},
			},
			end: func() error { s.started.Wait(); return mine.Release(s.ctx) },
			after: func() error {
				if !s.lost() {
					return nil
				}
				s.started.Wait()
				return nil
			},
		}
	}}, operation{"SharedLock.AcquireRead, behind one that downgrades", func(s *stage) doing {
		theirs := written(s, s.other)
		do := granting(s, s.shared(s.victim).AcquireRead)
		do.happen = func() error { return theirs.Downgrade(s.ctx) }
		do.after = func() error {
			return errors.Join(theirs.Write(s.ctx), theirs.Release(s.ctx), written(s, s.other).Release(s.ctx))
		}
		return do
	}}, operation{"SharedLock.AcquireWrite, behind one that has downgraded", func(s *stage) doing {
		theirs := written(s, s.other)
		s.ok(theirs.Downgrade(s.ctx))
		do := granting(s, s.shared(s.victim).AcquireWrite)
		do.happen = func() error { return theirs.Release(s.ctx) }
		do.after = func() error { return written(s, s.other).Release(s.ctx) }
		return do
	}}, besideDowngraded("SharedLock.AcquireRead", recipes.SharedLock.AcquireRead), besideDowngraded("SharedLock.TryRead", recipes.SharedLock.TryRead))
}

func priorityLockOperations() []operation {
	none := recipes.PriorityLockConfig{}
	written := func(s *stage, in recipes.Client) recipes.PriorityHold {
		return must.Get(s.priority(in, none).AcquireWrite(s.ctx))(s.T)
	}
	turn := func(s *stage) func() error {
		return func() error {
			h, err := s.priority(s.other, none).AcquireWrite(s.ctx)
			if err != nil {
				return err
			}
			return h.Release(s.ctx)
		}
	}
	return append(revocations("PriorityLock", func(s *stage, in recipes.Client) (revocable, func(context.Context) (revocableHold, error)) {
		l := s.priority(in, none)
		return l, func(ctx context.Context) (revocableHold, error) { return l.AcquireWrite(ctx) }
	}), operation{"PriorityLock.AcquireWrite, a claim", func(s *stage) doing {
		do := granting(s, s.priority(s.victim, none).AcquireWrite)
		do.denied = []denial{{znode: stagePath, perms: noWrite}}
		claimed, remove := zktest.Op(zkserver.OpGetData, "-writing-"), func() error { return s.removeLike("-writing-") }
		lists := 0
		do.between = []meddling{
			{name: "the claim is deleted", at: claimed, do: remove, want: recipes.ErrRemoved},
			{name: "the claim is deleted before the readers are listed", at: func(r zkserver.Request) bool {
				if r.Op == zkserver.OpGetChildren2 {
					lists++
				}
				return lists == 2
			}, do: remove, want: recipes.ErrRemoved},
		}
		do.after = turn(s)
		return do
	}}, operation{"PriorityLock.AcquireRead, a claim", func(s *stage) doing {
		s.ok(written(s, s.other).Release(s.ctx)) // creates the path
		do := granting(s, s.priority(s.victim, none).AcquireRead)
		do.denied = []denial{{znode: stagePath, perms: noDelete}}
		like := func(part string) *zkserver.Node {
			return s.find(func(n zkserver.Node) bool { return strings.Contains(n.Path, part) })
		}
		do.between = []meddling{{name: "its znode is written", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.write(like("-read-").Path, "x") }, then: func() {
			if data := string(like("-reading-").Data); data != "x" {
				s.Errorf("the claim has copied the data %q; want what was written last", data)
			}
		}}}
		do.after = turn(s)
		return do
	}}, operation{"PriorityLock.TryRead, a claim", func(s *stage) doing {
		s.ok(written(s, s.other).Release(s.ctx)) // creates the path
		var theirs recipes.PriorityHold
		do := granting(s, s.priority(s.victim, recipes.PriorityLockConfig{Priority: 50}).TryRead)
		do.between = []meddling{{name: "a writer claims before it", at: zktest.Op(zkserver.OpMulti), do: func() error { theirs = written(s, s.other); return nil }, want: recipes.ErrContended, then: func() { s.ok(theirs.Write(s.ctx)) }}}
		return do
	}}, operation{"PriorityHold.HandOff", func(s *stage) doing {
		mine := written(s, s.victim)
		// The last waiter is named as successor, although one of better priority waits too.
		join := func(priority int, granted chan<- int) string {
			places := make(chan recipes.Place, 1)
			waits := s.priority(s.other, recipes.PriorityLockConfig{Priority: priority, Joined: func(p recipes.Place) { places <- p }})
			s.started.Go(func() {
				h, err := waits.AcquireWrite(s.ctx)
				if err == nil {
					granted <- priority
					err = h.Release(s.ctx)
				}
				if err != nil && !errors.Is(err, recipes.ErrRemoved) && !errors.Is(err, recipes.ErrAccessDenied) && s.Context().Err() == nil { // some cases expect these errors
					s.Errorf("priority %d: %v", priority, err)
				}
			})
			return (<-places).Znode
		}
		granted := make(chan int, 2)
		join(0, granted)
		successor := join(9, granted)
		first := 0
		done := mine.Done()
		return doing{
			act: func(ctx context.Context) error { return mine.HandOff(ctx, successor) },
			happened: func() bool {
				calm() // once one waiter is granted, the other one follows
				if first == 0 && len(granted) > 0 {
					first = <-granted
				}
				return first == 9
			},
			once: true,
			denied: []denial{{znode: stagePath, perms: noWrite, then: func() {
				s.ok(mine.Err())
				s.ok(s.remove(mine.Znode()))
				<-done
				if lost := mine.Err(); !errors.Is(lost, recipes.ErrRemoved) {
					s.Errorf("another client has deleted its znode, but Err is %v", lost)
				}
			}}},
			between: []meddling{
				{name: "its own znode is deleted", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(mine.Znode()) }, want: recipes.ErrRemoved},
				{name: "the successor's znode is written", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.write(successor, "x") }},
				{name: "the successor's znode is deleted", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(successor) }, want: recipes.ErrNoNode, then: func() {
					if err := errors.Join(mine.Err(), mine.Write(s.ctx), mine.Release(s.ctx)); err != nil {
						s.Errorf("the hold was not handed off, but is not held: %v", err)
					}
				}},
			},
			after: func() error {
				if err := mine.Release(s.ctx); err != nil && !errors.Is(err, recipes.ErrNotHeld) && !s.lost() {
					return err
				}
				return nil
			},
		}
	}}, operation{"PriorityLock.AcquireWrite, as a successor", func(s *stage) doing {
		theirs := written(s, s.other)
		places := make(chan recipes.Place, 1)
		lock := s.priority(s.victim, recipes.PriorityLockConfig{Priority: 9, Joined: func(p recipes.Place) {
			select {
			case places <- p:
			default: // again
			}
		}})
		do := granting(s, lock.AcquireWrite)
		do.happen = func() error {
			select {
			case p := <-places:
				if err := theirs.HandOff(s.ctx, p.Znode); !errors.Is(err, recipes.ErrNoNode) {
					return err
				}
			default: // the contender has not joined
			}
			return theirs.Release(s.ctx)
		}
		do.after = turn(s)
		return do
	}})
}
