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

// An acquireFunc waits for the grant of a request, or resumes it. If the recipe has a wait queue, it
// calls joined once.
type acquireFunc func(ctx context.Context, t target, r *pb.AcquireRequest, joined func(recipes.Place)) (*grant, error)

// acquire is the acquireFunc of all recipes. A recipe has a case and a function here, and a case in
// response if its grant has more than a token and a znode. An unknown recipe comes from a newer host.
func acquire(ctx context.Context, t target, r *pb.AcquireRequest, joined func(recipes.Place)) (*grant, error) {
	switch m := r.GetRecipe().(type) {
	case *pb.AcquireRequest_Lock:
		return acquireLock(ctx, t, r, m.Lock, joined)
	case *pb.AcquireRequest_SharedLock:
		return acquireSharedLock(ctx, t, r, m.SharedLock, joined)
	case *pb.AcquireRequest_PriorityLock:
		return acquirePriorityLock(ctx, t, r, m.PriorityLock, joined)
	case *pb.AcquireRequest_Semaphore:
		return acquirePermit(ctx, t, r, m.Semaphore, joined)
	case *pb.AcquireRequest_Slots:
		return acquireSlot(ctx, t, r, m.Slots, joined)
	case *pb.AcquireRequest_Election:
		return campaign(ctx, t, r, m.Election, joined)
	case *pb.AcquireRequest_Group:
		return joinGroup(ctx, t, r, m.Group)
	case *pb.AcquireRequest_Names:
		return registerName(ctx, t, r, m.Names)
	case *pb.AcquireRequest_Queue:
		return receiveElement(ctx, t, r)
	case *pb.AcquireRequest_DoubleBarrier:
		return enterDoubleBarrier(ctx, t, r, m.DoubleBarrier, joined)
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

func acquireLock(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Lock, joined func(recipes.Place)) (*grant, error) {
	l, err := t.Lock(t.path, recipes.LockConfig{
		Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
	})
	if err != nil {
		return nil, err
	}
	return grantOf(ctx, r, l, l.Acquire, l.TryAcquire, recipes.Hold.Release)
}

func semaphoreConfig(t target, r *pb.AcquireRequest, m *pb.Semaphore, joined func(recipes.Place)) recipes.SemaphoreConfig {
	return recipes.SemaphoreConfig{
		Dialect: t.dialect, Permits: int(m.GetPermits()), Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
	}
}

func acquirePermit(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Semaphore, joined func(recipes.Place)) (*grant, error) {
	s, err := t.Semaphore(t.path, semaphoreConfig(t, r, m, joined))
	if err != nil {
		return nil, err
	}
	return grantOf(ctx, r, s, s.Acquire, s.TryAcquire, recipes.Hold.Release)
}

func acquireSlot(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Semaphore, joined func(recipes.Place)) (*grant, error) {
	s, err := t.Slots(t.path, semaphoreConfig(t, r, m, joined))
	if err != nil {
		return nil, err
	}
	return grantOf(ctx, r, s, s.Acquire, s.TryAcquire, recipes.SlotHold.Release)
}

func acquireSharedLock(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.SharedLock, joined func(recipes.Place)) (*grant, error) {
	l, err := t.SharedLock(t.path, recipes.SharedLockConfig{
		Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
		Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
	})
	if err != nil {
		return nil, err
	}
	wait, try := inMode[recipes.SharedHold](l, m.GetMode())
	return grantOf(ctx, r, l, wait, try, recipes.SharedHold.Release)
}

func acquirePriorityLock(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.PriorityLock, joined func(recipes.Place)) (*grant, error) {
	if err := t.plain(); err != nil {
		return nil, err
	}
	l, err := t.PriorityLock(t.path, recipes.PriorityLockConfig{
		Strategy: recipes.Strategy(m.GetStrategy()), Data: r.GetData(), Joined: joined,
		Revocable: m.GetRevocable(), Grace: m.GetGrace().AsDuration(),
		Priority: int(m.GetPriority()), Ask: m.GetAsk(),
	})
	if err != nil {
		return nil, err
	}
	wait, try := inMode[recipes.PriorityHold](l, m.GetMode())
	return grantOf(ctx, r, l, wait, try, recipes.PriorityHold.Release)
}

func campaign(ctx context.Context, t target, r *pb.AcquireRequest, m *pb.Election, joined func(recipes.Place)) (*grant, error) {
	e, err := t.Election(t.path, recipes.ElectionConfig{Dialect: t.dialect, Strategy: recipes.Strategy(m.GetStrategy()), Joined: joined})
	if err != nil {
		return nil, err
	}
	campaign := func(ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, r.GetData()) }
	return grantOf(ctx, r, e, campaign, nil, recipes.Leadership.Resign)
}

type readWriteLock[H recipes.Hold] interface {
	AcquireRead(context.Context) (H, error)
	AcquireWrite(context.Context) (H, error)
	TryRead(context.Context) (H, error)
	TryWrite(context.Context) (H, error)
}

// inMode returns the methods of the lock that acquire it in the mode of a request. A resumed hold
// does not need them: its znode has the mode.
func inMode[H recipes.Hold](l readWriteLock[H], mode pb.Mode) (wait, try func(context.Context) (H, error)) {
	switch wire.Mode(mode) {
	case recipes.Reading:
		return l.AcquireRead, l.TryRead
	case recipes.Writing:
		return l.AcquireWrite, l.TryWrite
	}
	unknown := func(context.Context) (none H, err error) {
		return none, fmt.Errorf("%w: the mode is not known", recipes.ErrInvalid)
	}
	return unknown, unknown
}

// grantOf waits for the grant that r asks a recipe for, tries to get it, or resumes the grant or the
// place that r names. try is nil for a recipe that cannot try.
func grantOf[G recipes.Grant](ctx context.Context, r *pb.AcquireRequest, recipe any, wait, try func(context.Context) (G, error),
	release func(G, context.Context) error) (*grant, error) {
	var g G
	var err error
	switch {
	case r.GetResumed() != nil:
		g, err = resumeGrant[G](ctx, recipe, r.GetResumed(), r.GetTry())
	case !r.GetTry():
		g, err = wait(ctx)
	case try != nil:
		g, err = try(ctx)
	default:
		err = errNoTry
	}
	return &grant{
		Grant:        g,
		release:      func(ctx context.Context) error { return release(g, ctx) },
		endsWithHost: r.GetElection().GetEndsWithHost() || r.GetGroup().GetEndsWithHost(),
	}, err
}

var errNoTry = fmt.Errorf("%w: the recipe has no try", recipes.ErrInvalid)

// plain returns an error if a request names a dialect other than the default. Its recipe has no
// other.
func (t target) plain() error {
	if t.dialect != "" && t.dialect != recipes.ZooKeeper {
		return fmt.Errorf("%w: the recipe has no dialect %s", recipes.ErrInvalid, t.dialect)
	}
	return nil
}
