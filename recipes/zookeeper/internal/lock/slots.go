package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// slots is a semaphore whose contenders claim a number when they are next.
//
// # Why two holders never have the same number
//
// The number is in the data of the contender's lease. A claim is one transaction. It sets the data
// of the path, at the version that was read before the numbers. And it writes the number to the
// lease, at version 0. Every claim changes the version of the path. So of two claims that found the
// same number free, the server refuses the later one. The path cannot be deleted while a lease
// exists, so the version never starts again.
//
// A lease is written once, by its claim, and then has version 1. If another client writes to it,
// the version changes. Then all contenders treat it as a lease without a number, and the hold ends:
// its guarded writes check the version. So a number has at most one holder that can write, whatever
// others do to the leases. The name of a lease contains a GUID, so no other lease has it.
//
// # Why a permit finds a number
//
// A contender with a number has a permit, and a contender with a permit is among the first
// n of the wait queue. So at most n-1 others have a number, and one of n is free. So
// a claim reads the first n leases only.
//
// # Why a lost reply does no harm
//
// The claim is repeated, unless the lease has a number now. If a server that lags does not show the
// number yet, the path has another version, and the second claim is refused. If the first claim
// arrives late, the second one has changed the version, and the first is refused. So a lease gets one
// number, and no sync is needed. A contender that gives up deletes its lease, and no claim can
// follow. After the claim, line.Line.Granted decides, as it does for every grant.
//
// # Why the number is not in a name
//
// A name with the number would be another znode, which uses another sequence number of the path. It
// would appear as a new contender beside one that has left.
type slots struct{ *semaphore }

func NewSlots(lines *line.Lines, path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	s, err := newSemaphore("slots", lines, path, cfg, line.Spoken{recipes.ZooKeeper: {line.Lease}})
	if err != nil {
		return nil, err
	}
	if s.Line.Strategy == recipes.Handoff {
		s.Line.Strategy = recipes.Predecessor // the name of a handoff's znode has no GUID, and others must not write to it
	}
	made := slots{s}
	s.Line.Claim = made.claim
	return made, nil
}

func (s slots) Acquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, false) }

func (s slots) TryAcquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, true) }

func (s slots) joins(ctx context.Context, try bool) (recipes.SlotHold, error) {
	longest := s.Path() + strings.Repeat("x", 80) // no znode of a contender has a longer path
	if err := s.Session.TxnFits(s.claimTxn(longest, s.cfg.Permits, 0)); err != nil {
		return nil, s.Failed(err) // before the wait
	}
	return s.numbered(s.Metered(ctx, func() (*line.Hold, error) { return s.acquire(ctx, try) }))
}

// Resume is line.Line.Resume.
func (s slots) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.SlotHold, error) {
	return s.numbered(s.Line.Resume(ctx, znode, token))
}

// ResumeWaiting is line.Line.ResumeWaiting. If the contender has claimed a number before its
// process ended, it keeps the number.
func (s slots) ResumeWaiting(ctx context.Context, znode string, try bool) (recipes.SlotHold, error) {
	return s.numbered(s.Line.ResumeWaiting(ctx, znode, s.Trying(try)))
}

func (s slots) numbered(hold *line.Hold, err error) (recipes.SlotHold, error) {
	if err != nil {
		return nil, s.Failed(err)
	}
	return slotHold{hold}, nil
}

type slotHold struct{ *line.Hold }

func (h slotHold) Slot() int { return h.Number() }

// claimTxn writes the number to the lease, if the data of the path has the version.
func (s slots) claimTxn(lease string, number int, version int32) (t session.Txn) {
	t.Set(s.Path(), s.word(), version)
	t.Set(lease, line.SlotData(number, s.cfg.Data), 0)
	return t
}

// claim claims the lowest free number, unless the lease has a number.
func (s slots) claim(ctx context.Context, lease string) error {
	for {
		version, err := s.agreed(ctx) // before the path is listed
		if err != nil {
			return err
		}
		number, has, err := s.lowest(ctx, lease)
		if err != nil || has {
			return err
		}
		t := s.claimTxn(lease, number, version)
		if version == recipes.AnyVersion { // AnyVersion compares nothing, so first give the path a version
			t = session.Txn{}
			t.Set(s.Path(), s.word(), version)
		}
		err = s.Session.Commit(ctx, t)
		refused, ok := errors.AsType[*session.TxnError](err)
		switch {
		case err == nil && version != recipes.AnyVersion:
			return nil
		case errors.Is(err, recipes.ErrNoNode):
			return fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, lease)
		case ok && refused.Index == 1 && errors.Is(err, recipes.ErrBadVersion):
			return fmt.Errorf("claim a number: %w, or another client has written to it: %s", recipes.ErrRemoved, lease)
		case err != nil && !znode.TryAgain(ctx, s.Session, err):
			return znode.GivenUp(ctx, s.Session, "claim a number of "+s.Path(), err)
		}
	}
}

// lowest returns the lowest number that no lease has, or reports that this one has a number.
func (s slots) lowest(ctx context.Context, lease string) (number int, has bool, err error) {
	entries, err := s.Line.Entries(ctx)
	if err != nil {
		return 0, false, err
	}
	taken, exists := make(map[int]bool), false
	for left := s.cfg.Permits; left > 0 && len(entries) > 0; {
		first := entries[:min(left, len(entries))]
		entries = entries[len(first):]
		found, err := line.Parent{Path: s.Path()}.Contenders(ctx, s.Session, recipes.KindSemaphore, first)
		if err != nil {
			return 0, false, err
		}
		for _, c := range found {
			exists = exists || c.Znode == lease
			if c.SessionID != 0 { // a persistent znode takes the place of a contender behind it
				left--
			}
			if c.Slot != nil {
				taken[*c.Slot] = true
				has = has || c.Znode == lease
			}
		}
	}
	for taken[number] {
		number++
	}
	switch {
	case !exists:
		return 0, false, fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, lease)
	case !has && number >= s.cfg.Permits:
		return 0, false, fmt.Errorf("%w: %d numbers are taken, and a permit is free", recipes.ErrInternal, number)
	}
	return number, has, nil
}
