package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A runner waits for the grant of a request. If the recipe has a wait queue, it calls joined
// once.
type runner = func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error)

// runnerOf is the table of the recipes that make grants. A recipe has a case here and a runner, and
// a case in response if its grant has more than a token and a znode. An unknown recipe comes from a
// newer host.
func runnerOf(r *pb.AcquireRequest) (runner, error) {
	switch m := r.GetRecipe().(type) {
	case *pb.AcquireRequest_Lock:
		return lockRunner(r, m.Lock), nil
	case *pb.AcquireRequest_SharedLock:
		return sharedLockRunner(r, m.SharedLock), nil
	case *pb.AcquireRequest_PriorityLock:
		return priorityLockRunner(r, m.PriorityLock), nil
	case *pb.AcquireRequest_Semaphore:
		return semaphoreRunner(r, m.Semaphore), nil
	case *pb.AcquireRequest_Slots:
		return slotsRunner(r, m.Slots), nil
	case *pb.AcquireRequest_Election:
		return electionRunner(r, m.Election), nil
	case *pb.AcquireRequest_Group:
		return groupRunner(r, m.Group), nil
	case *pb.AcquireRequest_Names:
		return namesRunner(r, m.Names), nil
	case *pb.AcquireRequest_Queue:
		return queueRunner(r), nil
	case *pb.AcquireRequest_DoubleBarrier:
		return doubleBarrierRunner(r, m.DoubleBarrier), nil
	}
	return nil, unknownRecipe(r)
}

// unknownRecipe returns the error for a request without a recipe that the plugin knows. The plugin
// knows only the field's number.
func unknownRecipe(r *pb.AcquireRequest) error {
	var fields []string
	for b := r.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, _, n := protowire.ConsumeField(b)
		if n < 0 {
			break
		}
		fields, b = append(fields, strconv.Itoa(int(number))), b[n:]
	}
	if fields == nil {
		return fmt.Errorf("%w: AcquireRequest has no recipe", recipes.ErrInvalid)
	}
	return fmt.Errorf("%w: the recipe in field %s of AcquireRequest; a newer plugin may know it", recipes.ErrUnsupported, strings.Join(fields, ", "))
}

// response returns the answer to a request: the grant, and what its recipe adds. The grant must be
// the recipe's, because a host may use a request id twice.
func response(r *pb.AcquireRequest, c *acquisition) (*pb.AcquireResponse, error) {
	a := &pb.AcquireResponse{Grant: &pb.Grant{Token: int64(c.grant.Token()), Znode: c.grant.Znode()}}
	if c.place != nil {
		a.Place = wire.ToPlace(*c.place)
	}
	switch r.GetRecipe().(type) {
	case *pb.AcquireRequest_Slots:
		h, err := as[recipes.SlotHold](c, "no slot")
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Slot{Slot: int32(h.Slot())}
	case *pb.AcquireRequest_Queue:
		d, err := as[recipes.Delivery](c, noElement)
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Delivery{Delivery: &pb.Delivery{Element: wire.ToElement(d.Element()), Attempt: int32(d.Attempt())}}
	case *pb.AcquireRequest_DoubleBarrier:
		p, err := as[recipes.Passage](c, noPassage)
		if err != nil {
			return nil, err
		}
		a.Recipe = &pb.AcquireResponse_Entered{Entered: &pb.Entered{Members: p.Members()}}
	}
	return a, nil
}

func lockRunner(r *pb.AcquireRequest, m *pb.Lock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Lock, error) {
		return t.Lock(t.path, recipes.LockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
		})
	}
	return granting(r, open, either(r, recipes.Lock.Acquire, recipes.Lock.TryAcquire), recipes.Hold.Release)
}

func semaphoreConfig(r *pb.AcquireRequest, m *pb.Semaphore, t target, joined func(recipes.Place)) recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{
		Dialect: t.dialect, Permits: int(m.GetPermits()), Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
	}
}

func semaphoreRunner(r *pb.AcquireRequest, m *pb.Semaphore) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Semaphore, error) {
		return t.Semaphore(t.path, semaphoreConfig(r, m, t, joined))
	}
	return granting(r, open, either(r, recipes.Semaphore.Acquire, recipes.Semaphore.TryAcquire), recipes.Hold.Release)
}

func slotsRunner(r *pb.AcquireRequest, m *pb.Semaphore) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Slots, error) {
		return t.Slots(t.path, semaphoreConfig(r, m, t, joined))
	}
	return granting(r, open, either(r, recipes.Slots.Acquire, recipes.Slots.TryAcquire), recipes.SlotHold.Release)
}

func sharedLockRunner(r *pb.AcquireRequest, m *pb.SharedLock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.SharedLock, error) {
		return t.SharedLock(t.path, recipes.SharedLockConfig{
			Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
		})
	}
	return granting(r, open, inMode[recipes.SharedLock](r, m.GetMode()), recipes.SharedHold.Release)
}

func priorityLockRunner(r *pb.AcquireRequest, m *pb.PriorityLock) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.PriorityLock, error) {
		if err := t.plain(); err != nil {
			return nil, err
		}
		return t.PriorityLock(t.path, recipes.PriorityLockConfig{
			Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
			Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
			Priority: int(m.GetPriority()), Ask: m.GetAsk(),
		})
	}
	return granting(r, open, inMode[recipes.PriorityLock](r, m.GetMode()), recipes.PriorityHold.Release)
}

func electionRunner(r *pb.AcquireRequest, m *pb.Election) runner {
	open := func(t target, joined func(recipes.Place)) (recipes.Election, error) {
		return t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Joined: joined})
	}
	campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
		return e.Campaign(ctx, r.GetData())
	}
	return granting(r, open, waiting(r, campaign), recipes.Leadership.Resign)
}

type readWriteLock[H recipes.Hold] interface {
	AcquireRead(context.Context) (H, error)
	AcquireWrite(context.Context) (H, error)
	TryRead(context.Context) (H, error)
	TryWrite(context.Context) (H, error)
}

// inMode returns the method of the lock that acquires it in the mode of a request. A resumed hold
// does not need it: its znode has the mode.
func inMode[L readWriteLock[H], H recipes.Hold](r *pb.AcquireRequest, mode pb.Mode) func(L, context.Context) (H, error) {
	switch wire.Mode(mode) {
	case recipes.Reading:
		return either(r, L.AcquireRead, L.TryRead)
	case recipes.Writing:
		return either(r, L.AcquireWrite, L.TryWrite)
	}
	return func(L, context.Context) (none H, err error) {
		return none, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
}

// granting returns a runner that opens the recipe and asks it for a grant, or resumes the grant or
// the place that r names.
func granting[R any, G recipes.Grant](r *pb.AcquireRequest, open func(t target, joined func(recipes.Place)) (R, error),
	ask func(R, context.Context) (G, error), release func(G, context.Context) error) runner {
	return func(ctx context.Context, t target, joined func(recipes.Place)) (*grant, error) {
		recipe, err := open(t, joined)
		if err != nil {
			return nil, err
		}
		var g G
		if resumed := r.GetResumed(); resumed == nil {
			g, err = ask(recipe, ctx)
		} else {
			g, err = resumeGrant[G](ctx, recipe, resumed, r.GetTry())
		}
		return &grant{
			Grant:        g,
			release:      func(ctx context.Context) error { return release(g, ctx) },
			endsWithHost: r.GetElection().GetEndsWithHost() || r.GetGroup().GetEndsWithHost(),
		}, err
	}
}

// either returns the method that a request calls: one that waits, or one that only tries.
func either[R, G any](r *pb.AcquireRequest, wait, try func(R, context.Context) (G, error)) func(R, context.Context) (G, error) {
	if r.GetTry() {
		return try
	}
	return wait
}

// waiting returns the method of a recipe that cannot try.
func waiting[R, G any](r *pb.AcquireRequest, wait func(R, context.Context) (G, error)) func(R, context.Context) (G, error) {
	return either(r, wait, func(R, context.Context) (none G, err error) {
		return none, fmt.Errorf("%w: the recipe has no try", recipes.ErrInvalid)
	})
}

// plain returns an error if a request names a dialect other than the default. Its recipe has no
// other.
func (t target) plain() error {
	if t.dialect != "" && t.dialect != recipes.ZooKeeper {
		return fmt.Errorf("%w: the recipe has no dialect %s", recipes.ErrInvalid, t.dialect)
	}
	return nil
}
