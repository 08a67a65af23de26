package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// grip is what a contender has got, and how it gives that back.
type grip struct {
	recipes.Grant
	giveBack func(context.Context) error
}

// gripped is for the results of Acquire and its like.
func gripped[G recipes.Grant](g G, giveBack func(G) func(context.Context) error, err error) (*grip, error) {
	if err != nil {
		if any(g) != nil {
			return nil, fmt.Errorf("something is held in spite of: %v", err)
		}
		return nil, err
	}
	return &grip{g, giveBack(g)}, nil
}

func releasing[H recipes.Hold](h H, err error) (*grip, error) {
	return gripped(h, func(h H) func(context.Context) error { return h.Release }, err)
}

// readWrite is a lock for readers and writers.
type readWrite[H recipes.Hold] interface {
	AcquireRead(ctx context.Context) (H, error)
	AcquireWrite(ctx context.Context) (H, error)
	TryRead(ctx context.Context) (H, error)
	TryWrite(ctx context.Context) (H, error)
}

// inMode is how to enter such a lock in one mode.
func inMode[H recipes.Hold](mode recipes.Mode, open func(recipes.Session) (readWrite[H], error)) func(context.Context, recipes.Session, bool) (*grip, error) {
	return func(ctx context.Context, s recipes.Session, try bool) (*grip, error) {
		l, err := open(s)
		switch {
		case err != nil:
			return nil, err
		case try && mode == recipes.Reading:
			return releasing(l.TryRead(ctx))
		case try:
			return releasing(l.TryWrite(ctx))
		case mode == recipes.Reading:
			return releasing(l.AcquireRead(ctx))
		}
		return releasing(l.AcquireWrite(ctx))
	}
}

// stance is a way to stand in the line at latePath.
type stance struct {
	name  string
	enter func(ctx context.Context, s recipes.Session, try bool) (*grip, error)
	// tries is false where there is nothing but waiting.
	tries bool
	// full is how many of another session keep a contender waiting, if they enter by
	// blocks. nil: as the contender itself does.
	full   int
	blocks func(ctx context.Context, s recipes.Session, try bool) (*grip, error)
}

func stances() (all []stance) {
	type entry = func(ctx context.Context, s recipes.Session, try bool) (*grip, error)
	type oneMode interface {
		Acquire(ctx context.Context) (recipes.Hold, error)
		TryAcquire(ctx context.Context) (recipes.Hold, error)
	}
	acquiring := func(open func(recipes.Session) (oneMode, error)) entry {
		return func(ctx context.Context, s recipes.Session, try bool) (*grip, error) {
			l, err := open(s)
			switch {
			case err != nil:
				return nil, err
			case try:
				return releasing(l.TryAcquire(ctx))
			}
			return releasing(l.Acquire(ctx))
		}
	}
	lock := func(cfg recipes.LockConfig) entry {
		return acquiring(func(s recipes.Session) (oneMode, error) { return s.Lock(latePath, cfg) })
	}
	shared := func(cfg recipes.SharedLockConfig, mode recipes.Mode) entry {
		return inMode(mode, func(s recipes.Session) (readWrite[recipes.SharedHold], error) { return s.SharedLock(latePath, cfg) })
	}
	priority := func(mode recipes.Mode) entry {
		return inMode(mode, func(s recipes.Session) (readWrite[recipes.PriorityHold], error) {
			return s.PriorityLock(latePath, recipes.PriorityLockConfig{})
		})
	}
	semaphore := func(cfg recipes.SemaphoreConfig) entry {
		cfg.Permits = 2
		return acquiring(func(s recipes.Session) (oneMode, error) { return s.Semaphore(latePath, cfg) })
	}
	election := func(cfg recipes.ElectionConfig) entry {
		return func(ctx context.Context, s recipes.Session, _ bool) (*grip, error) {
			e, err := s.Election(latePath, cfg)
			if err != nil {
				return nil, err
			}
			leads, err := e.Campaign(ctx, []byte("x"))
			return gripped(leads, func(l recipes.Leadership) func(context.Context) error { return l.Resign }, err)
		}
	}
	for _, dialect := range recipes.Dialects() {
		reader := stance{name: "read lock, " + string(dialect), tries: true,
			enter:  shared(recipes.SharedLockConfig{Dialect: dialect}, recipes.Reading),
			blocks: shared(recipes.SharedLockConfig{Dialect: dialect}, recipes.Writing)}
		permits := stance{name: "semaphore, " + string(dialect), tries: true, full: 2, enter: semaphore(recipes.SemaphoreConfig{Dialect: dialect})}
		all = append(all, reader, permits)
	}
	return append(all,
		stance{name: "lock", tries: true, enter: lock(recipes.LockConfig{})},
		stance{name: "lock, kazoo", tries: true, enter: lock(recipes.LockConfig{Dialect: recipes.Kazoo})},
		stance{name: "write lock", tries: true, enter: shared(recipes.SharedLockConfig{}, recipes.Writing)},
		stance{name: "election", enter: election(recipes.ElectionConfig{})},
		stance{name: "lock, predecessor", tries: true, enter: lock(recipes.LockConfig{Strategy: recipes.Predecessor})},
		stance{name: "election, predecessor", enter: election(recipes.ElectionConfig{Strategy: recipes.Predecessor})},
		stance{name: "lock, herd", tries: true, enter: lock(recipes.LockConfig{Strategy: recipes.Herd})},
		stance{name: "semaphore, herd", tries: true, full: 2, enter: semaphore(recipes.SemaphoreConfig{Strategy: recipes.Herd})},
		stance{name: "priority read lock", tries: true, enter: priority(recipes.Reading), blocks: priority(recipes.Writing)},
		stance{name: "priority write lock", tries: true, enter: priority(recipes.Writing)},
	)
}

// fill has the other session take what there is, and returns how it gives that back.
func (st stance) fill(l *late, ctx context.Context) (giveBack func() error, err error) {
	enter := st.blocks
	if enter == nil {
		enter = st.enter
	}
	var all []*grip
	giveBack = func() (err error) {
		for _, g := range all {
			err = errors.Join(err, g.giveBack(ctx))
		}
		return err
	}
	for range max(st.full, 1) {
		g, err := enter(ctx, l.other, false)
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		all = append(all, g)
	}
	return giveBack, nil
}

// turn is another session's, which waits for nobody for long.
func (st stance) turn(l *late, ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // virtual
	defer cancel()
	giveBack, err := st.fill(l, ctx)
	if err != nil {
		return err
	}
	return giveBack()
}

// result is what a contender in another goroutine has got.
type result struct {
	got *grip
	err error
}

func (st stance) inBackground(ctx context.Context, s recipes.Session) <-chan result {
	done := make(chan result, 1)
	go func() {
		got, err := st.enter(ctx, s, false)
		done <- result{got, err}
	}()
	synctest.Wait()
	return done
}

// stands checks a grant, and that nothing is known against it.
func (g *grip) stands(ctx context.Context) error { return errors.Join(g.Err(), g.Write(ctx)) }

// disturbedLines are about those who stand in line: they are let in at once, they wait
// between two others, they try, and they leave.
func disturbedLines() (all []deed) {
	for _, st := range stances() {
		all = append(all,
			deed{st.name + ", free", func(l *late, ctx context.Context) doing {
				var mine *grip
				return doing{
					act:   func(acting context.Context) (err error) { mine, err = st.enter(acting, l.victim, false); return err },
					end:   func() error { return errors.Join(mine.stands(ctx), mine.giveBack(ctx)) },
					after: func() error { return st.turn(l, ctx) },
				}
			}},
			deed{st.name + ", between two", func(l *late, ctx context.Context) doing { return st.between(l, ctx) }},
			deed{st.name + ", given back", func(l *late, ctx context.Context) doing {
				mine := must[*grip](l.T)(st.enter(ctx, l.victim, false))
				if err := mine.stands(ctx); err != nil {
					l.Fatal(err)
				}
				return doing{
					act: func(acting context.Context) error {
						err := mine.giveBack(acting)
						if !errors.Is(mine.Err(), recipes.ErrReleased) {
							l.Errorf("it is given back, and Err is %v", mine.Err())
						}
						return err
					},
					after: func() error { return st.turn(l, ctx) },
				}
			}},
		)
		if st.tries {
			all = append(all, deed{st.name + ", tried", func(l *late, ctx context.Context) doing {
				giveBack, err := st.fill(l, ctx)
				if err != nil {
					l.Fatal(err)
				}
				return doing{
					act: func(acting context.Context) error {
						_, err := st.enter(acting, l.victim, true)
						switch {
						case err == nil:
							return errors.New("granted beside the holder")
						case errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled):
							return nil
						}
						return err
					},
					after: func() error { return errors.Join(giveBack(), st.turn(l, ctx)) },
				}
			}})
		}
	}
	return append(all, deed{"resign after an acknowledgement", func(l *late, ctx context.Context) doing {
		campaign := func(s recipes.Session) recipes.Leadership {
			leads := must[recipes.Leadership](l.T)(must[recipes.Election](l.T)(s.Election(latePath, recipes.ElectionConfig{})).Campaign(ctx, nil))
			if err := leads.Acknowledge(ctx, []byte("y")); err != nil {
				l.Fatal(err)
			}
			return leads
		}
		mine := campaign(l.victim)
		return doing{
			act: mine.Resign,
			after: func() error {
				err := campaign(l.other).Resign(ctx)
				calm()
				if n := l.below(latePath + "/acks/"); n != 0 {
					l.Errorf("%d acknowledgements are left", n)
				}
				return err
			},
		}
	}})
}

// between has the victim wait behind a holder, and another contender behind the victim.
func (st stance) between(l *late, ctx context.Context) doing {
	third := openVirtual(l.T, l.srv)
	var mine *grip
	var behind <-chan result
	// next is the turn of the contender behind, at the latest when the victim has left.
	next := func() error {
		r := <-behind
		if r.err != nil {
			return r.err
		}
		return r.got.giveBack(ctx)
	}
	return doing{
		act: func(acting context.Context) error {
			holders, err := st.fill(l, ctx)
			if err != nil {
				return err
			}
			done := st.inBackground(acting, l.victim)
			bounded, cancel := context.WithTimeout(ctx, time.Minute) // virtual
			l.Cleanup(cancel)
			behind = st.inBackground(bounded, third)
			if err := holders(); err != nil {
				return err
			}
			r := <-done
			if mine = r.got; r.err != nil {
				if err := next(); err != nil {
					l.Errorf("the one behind: %v", err)
				}
			}
			return r.err
		},
		end:   func() error { return errors.Join(mine.stands(ctx), mine.giveBack(ctx), next()) },
		after: func() error { return st.turn(l, ctx) },
	}
}

// disturbedRevocations are about those who ask for what another holds.
func disturbedRevocations() (all []deed) {
	type revocable interface {
		Revoke(context.Context, string) error
		RevokeForced(context.Context, string) error
	}
	type asked interface {
		recipes.Hold
		Revoked() <-chan struct{}
	}
	for name, at := range map[string]func(l *late, ctx context.Context) (revocable, asked){
		"shared lock": func(l *late, ctx context.Context) (revocable, asked) {
			cfg := recipes.SharedLockConfig{Revocable: true, Grace: time.Second}
			theirs := must[recipes.SharedLock](l.T)(l.other.SharedLock(latePath, cfg))
			return must[recipes.SharedLock](l.T)(l.victim.SharedLock(latePath, cfg)), must[recipes.SharedHold](l.T)(theirs.AcquireWrite(ctx))
		},
		"priority lock": func(l *late, ctx context.Context) (revocable, asked) {
			cfg := recipes.PriorityLockConfig{Revocable: true, Grace: time.Second}
			theirs := must[recipes.PriorityLock](l.T)(l.other.PriorityLock(latePath, cfg))
			return must[recipes.PriorityLock](l.T)(l.victim.PriorityLock(latePath, cfg)), must[recipes.PriorityHold](l.T)(theirs.AcquireWrite(ctx))
		},
	} {
		all = append(all,
			deed{name + ", asked for", func(l *late, ctx context.Context) doing {
				lock, holder := at(l, ctx)
				revoked := holder.Revoked()
				return doing{
					act: func(acting context.Context) error { return lock.Revoke(acting, holder.Znode()) },
					after: func() error {
						select {
						case <-revoked:
						case <-ctx.Done():
							return errors.New("the holder was not asked")
						}
						return holder.Release(ctx)
					},
				}
			}},
			deed{name + ", taken away", func(l *late, ctx context.Context) doing {
				lock, holder := at(l, ctx)
				revoked, done := holder.Revoked(), holder.Done()
				return doing{
					act: func(acting context.Context) error {
						err := lock.RevokeForced(acting, holder.Znode())
						if lost := holder.Err(); lost != nil && !errors.Is(lost, recipes.ErrRevoked) {
							l.Errorf("the holder is told %v", lost)
						}
						return err
					},
					after: func() error {
						<-revoked
						<-done
						if lost := holder.Err(); !errors.Is(lost, recipes.ErrRevoked) {
							return fmt.Errorf("the holder is told %v", lost)
						}
						return nil
					},
				}
			}},
		)
	}
	return append(all, deed{"hand a lock off", func(l *late, ctx context.Context) doing {
		places, granted := make(chan recipes.Place, 1), make(chan result, 1)
		lock := func(s recipes.Session, cfg recipes.PriorityLockConfig) recipes.PriorityLock {
			return must[recipes.PriorityLock](l.T)(s.PriorityLock(latePath, cfg))
		}
		mine := must[recipes.PriorityHold](l.T)(lock(l.victim, recipes.PriorityLockConfig{}).AcquireWrite(ctx))
		waits := lock(l.other, recipes.PriorityLockConfig{Joined: func(p recipes.Place) { places <- p }})
		go func() {
			got, err := releasing(waits.AcquireWrite(ctx))
			granted <- result{got, err}
		}()
		successor := <-places
		return doing{
			act:      func(acting context.Context) error { return mine.HandOff(acting, successor.Znode) },
			happened: func() bool { return len(granted) == 1 },
			once:     true,
			after: func() error {
				if err := mine.Release(ctx); err != nil && !errors.Is(err, recipes.ErrNotHeld) {
					return err
				}
				r := <-granted
				if r.err != nil {
					return r.err
				}
				return r.got.giveBack(ctx)
			},
		}
	}})
}
