package line_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const historyPermits = 2

// Sessions acquire and release while requests and replies are lost and sessions expire at random.
// Holders make guarded writes. The server records them in the order of its transactions, which
// does not depend on clocks. The test checks:
//
//   - Between the first and the last write of a writer, no other holder wrote.
//   - The token of a priority lock is the transaction of the claim. Between a writer's claim and its
//     last write, no other contender claimed. After a writer's claim no other writer wrote, and
//     after its first write no earlier holder wrote.
//   - Of a semaphore's holders, at most as many as there are permits wrote at a time.
func TestHistoryOfReadersAndWriters(t *testing.T) {
	for name, turn := range map[string]rwTurn{"lock": exclusiveTurn, "shared": sharedTurn, "priority": priorityTurn, "semaphore": semaphoreTurn} {
		for range 3 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				runHistory(t, turn, seed, name == "priority")
			})
		}
	}
}

func runHistory(t *testing.T, turn rwTurn, seed uint64, fromToken bool) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	setup := zktest.Open(t, srv)
	if h, err := must.Get(setup.Lock("/written", recipes.LockConfig{}))(t).Acquire(ctx); err != nil || h == nil {
		t.Fatal(err) // keeps /written
	}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID == setup.ID() {
			return zkserver.Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		switch n := random.IntN(1000); {
		case n < 20:
			return zkserver.Fault{DropReply: true}
		case n < 40:
			return zkserver.Fault{CloseBefore: true}
		case n < 50:
			return zkserver.Fault{CloseAfter: true}
		case n < 55:
			return zkserver.Fault{ExpireBefore: true}
		case n < 60:
			return zkserver.Fault{ExpireAfter: true}
		}
		return zkserver.Fault{}
	})
	var turns, number atomic.Int64
	var all sync.WaitGroup
	for i := range 5 {
		r := rand.New(rand.NewPCG(seed, uint64(i+2)))
		all.Go(func() {
			for turns.Load() < 120 {
				s, err := zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				for s.Err() == nil && turns.Add(1) <= 120 {
					err := turn(ctx, r, s, func(h rwHold) error {
						for range 2 {
							path := fmt.Sprintf("/written/%d-%s-%d", h.Token(), h.Mode(), number.Add(1))
							if err := h.Write(ctx, recipes.Create(path, nil)); err != nil {
								return err
							}
						}
						return nil
					})
					for _, allowed := range []error{recipes.ErrSessionLost, recipes.ErrNotHeld, recipes.ErrUnknownOutcome, nil} {
						if err == nil || allowed != nil && errors.Is(err, allowed) {
							err = nil
						}
					}
					if err != nil {
						t.Errorf("contender %d: %v", i, err)
						return
					}
				}
				closing, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the server may be failing
				s.Close(closing)
				cancel()
				srv.ExpireSession(s.ID())
			}
		})
	}
	all.Wait()
	srv.SetFault(nil)
	checkWritten(t, srv, fromToken)
	for _, n := range srv.Tree() {
		if name, inside := strings.CutPrefix(n.Path, "/history/"); inside && name != "guards-lock-9999999999" && name != "guards-lease-9999999999" {
			t.Errorf("left behind: %s", n.Path)
		}
	}
}

// checkWritten checks the conditions that TestHistoryOfReadersAndWriters lists.
func checkWritten(t *testing.T, srv *zkserver.Server, fromToken bool) {
	t.Helper()
	type written struct {
		token int64
		mode  recipes.Mode
		zxid  int64
	}
	var all []written
	first, last := make(map[int64]int64), make(map[int64]int64) // the first and last write of each writer, by token
	for _, n := range srv.Tree() {
		var w written
		var i int
		if _, err := fmt.Sscanf(strings.ReplaceAll(n.Path, "-", " "), "/written/%d %s %d", &w.token, &w.mode, &i); err != nil {
			continue
		}
		w.zxid = n.Stat.Czxid
		all = append(all, w)
		if w.zxid <= w.token {
			t.Errorf("%s was written before its znode was there", n.Path)
		}
		if w.mode != recipes.Writing {
			continue
		}
		last[w.token] = max(last[w.token], w.zxid)
		if first[w.token] == 0 || w.zxid < first[w.token] {
			first[w.token] = w.zxid
		}
	}
	if len(all) < 50 {
		t.Errorf("only %d writes", len(all))
	}
	spans := make(map[int64][2]int64) // all writes, by token
	for _, w := range all {
		span, ok := spans[w.token]
		if !ok {
			span = [2]int64{w.zxid, w.zxid}
		}
		spans[w.token] = [2]int64{min(span[0], w.zxid), max(span[1], w.zxid)}
	}
	for _, w := range all {
		at := 0
		for _, span := range spans {
			if span[0] <= w.zxid && w.zxid <= span[1] {
				at++
			}
		}
		if w.mode == "permit" && at > historyPermits {
			t.Errorf("%d wrote at a time around %d", at, w.zxid)
		}
		for token := range last {
			switch {
			case w.token == token:
			case w.zxid > first[token] && w.zxid < last[token]:
				t.Errorf("%s of %d at %d, while %d wrote from %d to %d", w.mode, w.token, w.zxid, token, first[token], last[token])
			case fromToken && w.token > token && w.token < last[token]:
				t.Errorf("%s was granted at %d, while %d wrote until %d", w.mode, w.token, token, last[token])
			case fromToken && w.token < token && w.zxid > first[token]:
				t.Errorf("%s of %d at %d, after %d wrote", w.mode, w.token, w.zxid, token)
			case fromToken && w.mode == recipes.Writing && w.token < token && w.zxid > token:
				t.Errorf("%d wrote at %d, after %d had claimed", w.token, w.zxid, token)
			}
		}
	}
}

// rwHold has the methods that all kinds of holds share.
type rwHold interface {
	recipes.Hold
	Mode() recipes.Mode
}

// rwTurn acquires a lock with readers and writers, and calls write while it holds.
type rwTurn func(ctx context.Context, r *rand.Rand, s recipes.Client, write func(rwHold) error) error

// sharedTurn reads, writes, or writes and then reads.
func sharedTurn(ctx context.Context, r *rand.Rand, s recipes.Client, write func(rwHold) error) error {
	l, err := s.SharedLock("/history", recipes.SharedLockConfig{
		Strategy: anyStrategy(r), Revocable: true, Grace: time.Millisecond,
	})
	if err != nil {
		return err
	}
	acquire := l.AcquireWrite
	if r.IntN(2) == 0 {
		acquire = l.AcquireRead
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	err = write(h)
	if err == nil && h.Mode() == recipes.Writing && r.IntN(2) == 0 {
		if err = h.Downgrade(ctx); err == nil {
			err = write(h)
		}
	}
	if r.IntN(8) == 0 {
		return errors.Join(err, l.RevokeForced(ctx, h.Znode()))
	}
	return errors.Join(err, h.Release(ctx))
}

// priorityTurn reads or writes at a random priority, and sometimes releases by handoff.
func priorityTurn(ctx context.Context, r *rand.Rand, s recipes.Client, write func(rwHold) error) error {
	l, err := s.PriorityLock("/history", recipes.PriorityLockConfig{
		Strategy: anyStrategy(r), Priority: r.IntN(3), Ask: r.IntN(2) == 0, Revocable: true, Grace: time.Millisecond,
	})
	if err != nil {
		return err
	}
	acquire := l.AcquireWrite
	if r.IntN(2) == 0 {
		acquire = l.AcquireRead
	}
	h, err := acquire(ctx)
	if err != nil {
		return err
	}
	err = write(h)
	switch r.IntN(4) {
	case 0:
		all, _ := l.Contenders(ctx)
		for _, c := range all {
			if !c.Holds {
				handed := h.HandOff(ctx, c.Znode)
				if handed == nil {
					return err
				}
				if !errors.Is(handed, recipes.ErrNoNode) && !errors.Is(handed, recipes.ErrContended) {
					err = errors.Join(err, handed)
				}
				break
			}
		}
	case 1:
		return errors.Join(err, l.RevokeForced(ctx, h.Znode()))
	}
	return errors.Join(err, h.Release(ctx))
}

// exclusive is a hold of a lock.
type exclusive struct{ recipes.Hold }

func (exclusive) Mode() recipes.Mode { return recipes.Writing }

// exclusiveTurn acquires the lock with a random strategy, and sometimes gives up.
func exclusiveTurn(ctx context.Context, r *rand.Rand, s recipes.Client, write func(rwHold) error) error {
	l, err := s.Lock("/history", recipes.LockConfig{Strategy: anyStrategy(r)})
	if err != nil {
		return err
	}
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.IntN(8) == 0 {
		brief, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		defer cancel()
	}
	h, err := l.Acquire(brief)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(write(exclusive{h}), h.Release(ctx))
}

// permit is a hold of a semaphore.
type permit struct{ recipes.Hold }

func (permit) Mode() recipes.Mode { return "permit" }

func semaphoreTurn(ctx context.Context, r *rand.Rand, s recipes.Client, write func(rwHold) error) error {
	m, err := s.Semaphore("/history", recipes.SemaphoreConfig{Permits: historyPermits, Strategy: anyStrategy(r)})
	if err != nil {
		return err
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	return errors.Join(write(permit{h}), h.Release(ctx))
}

func anyStrategy(r *rand.Rand) recipes.Strategy {
	return recipes.Strategies()[r.IntN(len(recipes.Strategies()))]
}
