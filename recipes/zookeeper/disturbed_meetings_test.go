package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// whileWaiting runs wait in a goroutine, does something when it waits, and returns its
// error.
func whileWaiting(wait, do func() error) error {
	waited := make(chan error, 1)
	go func() { waited <- wait() }()
	synctest.Wait()
	done := do()
	return errors.Join(<-waited, done)
}

// disturbedMeetings are about those who wait for each other, and are seen by each other.
func disturbedMeetings() (all []deed) {
	for _, d := range recipes.Dialects() {
		all = append(all,
			deed{"enter a double barrier, " + string(d), func(l *late, ctx context.Context) doing { return entering(l, ctx, d) }},
			deed{"leave a double barrier, " + string(d), func(l *late, ctx context.Context) doing { return leaving(l, ctx, d) }},
		)
	}
	return append(all,
		deed{"wait at a barrier", func(l *late, ctx context.Context) doing {
			mine, theirs := barrierAt(l.T, l.victim, latePath), barrierAt(l.T, l.other, latePath)
			return doing{act: func(acting context.Context) error {
				if err := theirs.Set(ctx, nil); err != nil {
					return err
				}
				return whileWaiting(func() error { return mine.Wait(acting) }, func() error { return theirs.Remove(ctx) })
			}}
		}},
		deed{"wait for a latch", func(l *late, ctx context.Context) doing {
			mine, theirs := latchAt(l.T, l.victim, latePath, 1), latchAt(l.T, l.other, latePath, 1)
			return doing{act: func(acting context.Context) error {
				return whileWaiting(func() error { return mine.Wait(acting) }, func() error { _, err := theirs.CountDown(ctx); return err })
			}}
		}},
		deed{"join a group and leave", func(l *late, ctx context.Context) doing {
			joined := func(s recipes.Session) recipes.Membership {
				return must[recipes.Membership](l.T)(must[recipes.Group](l.T)(s.Group(latePath, recipes.GroupConfig{Name: "me"})).Join(ctx, nil))
			}
			mine := joined(l.victim)
			return doing{
				act: func(acting context.Context) error {
					err := mine.Leave(acting)
					if !errors.Is(mine.Err(), recipes.ErrReleased) {
						l.Errorf("it has left, and Err is %v", mine.Err())
					}
					return err
				},
				after: func() error { return joined(l.other).Leave(ctx) }, // the name is free
			}
		}},
		deed{"take a name of a group", func(l *late, ctx context.Context) doing {
			var mine recipes.Membership
			join := func(ctx context.Context, s recipes.Session) (recipes.Membership, error) {
				return must[recipes.Group](l.T)(s.Group(latePath, recipes.GroupConfig{Name: "me"})).Join(ctx, nil)
			}
			return doing{
				act: func(acting context.Context) (err error) { mine, err = join(acting, l.victim); return err },
				end: func() error { return errors.Join(mine.Write(ctx), mine.Leave(ctx)) },
				after: func() error {
					m, err := join(ctx, l.other)
					if err != nil {
						return err
					}
					return m.Leave(ctx)
				},
			}
		}},
		deed{"update a registration", func(l *late, ctx context.Context) doing {
			mine := must[recipes.Registration](l.T)(l.names().Register(ctx, "n", nil))
			return doing{
				act:      func(acting context.Context) error { return mine.Update(acting, []byte("x")) },
				happened: func() bool { return l.holds(latePath+"/n", "x") },
				end:      func() error { return mine.Unregister(ctx) },
			}
		}},
		deed{"give back a registration", func(l *late, ctx context.Context) doing {
			mine := must[recipes.Registration](l.T)(l.names().Register(ctx, "n", nil))
			return doing{act: mine.Unregister, after: func() error {
				theirs, err := must[recipes.Names](l.T)(l.other.Names(latePath)).Register(ctx, "n", nil)
				if err != nil {
					return err
				}
				return theirs.Unregister(ctx)
			}}
		}},
	)
}

// arrival is what a member in another goroutine has got.
type arrival struct {
	recipes.Passage
	err error
}

func (l *late) double(s recipes.Session, d recipes.Dialect) recipes.DoubleBarrier {
	return must[recipes.DoubleBarrier](l.T)(s.DoubleBarrier(latePath, recipes.DoubleBarrierConfig{Size: 2, Dialect: d}))
}

// goes has a member of the session enter in another goroutine.
func (l *late) goes(ctx context.Context, s recipes.Session, d recipes.Dialect) <-chan arrival {
	in := make(chan arrival, 1)
	go func() {
		p, err := l.double(s, d).Enter(ctx, nil)
		in <- arrival{p, err}
	}()
	synctest.Wait()
	return in
}

// part has two members leave, the first one with a context of its own.
func part(first recipes.Passage, firstCtx context.Context, second recipes.Passage, ctx context.Context) error {
	return whileWaiting(func() error { return first.Leave(firstCtx) }, func() error { return second.Leave(ctx) })
}

// meet has two members of other sessions enter and leave.
func (l *late) meet(ctx context.Context, d recipes.Dialect) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // virtual
	defer cancel()
	one, two := l.goes(ctx, l.other, d), l.goes(ctx, l.other, d)
	a, b := <-one, <-two
	if err := errors.Join(a.err, b.err); err != nil {
		return fmt.Errorf("two that enter: %w", err)
	}
	return part(a.Passage, ctx, b.Passage, ctx)
}

// entering has the victim enter first, and another come then. If the victim fails, the
// other gives up, or leaves alone if it has entered with what the victim had left.
func entering(l *late, ctx context.Context, d recipes.Dialect) doing {
	var mine, theirs arrival
	return doing{
		act: func(acting context.Context) error {
			first := l.goes(acting, l.victim, d)
			waiting, giveUp := context.WithCancel(ctx)
			defer giveUp()
			second := l.goes(waiting, l.other, d)
			if mine = <-first; mine.err != nil {
				giveUp()
				if theirs = <-second; theirs.err == nil {
					return errors.Join(mine.err, theirs.Leave(ctx))
				}
				return mine.err
			}
			theirs = <-second
			return theirs.err
		},
		end:   func() error { return errors.Join(mine.Write(ctx), part(mine.Passage, ctx, theirs.Passage, ctx)) },
		after: func() error { return l.meet(ctx, d) },
	}
}

// leaving has the victim leave first, and wait for the other.
func leaving(l *late, ctx context.Context, d recipes.Dialect) doing {
	first, second := l.goes(ctx, l.victim, d), l.goes(ctx, l.other, d)
	mine, theirs := <-first, <-second
	if err := errors.Join(mine.err, theirs.err); err != nil {
		l.Fatal(err)
	}
	var left error
	return doing{
		act: func(acting context.Context) error {
			return whileWaiting(func() error { return mine.Leave(acting) }, func() error {
				left = theirs.Leave(ctx)
				return nil
			})
		},
		after: func() error { return errors.Join(left, l.meet(ctx, d)) },
	}
}
