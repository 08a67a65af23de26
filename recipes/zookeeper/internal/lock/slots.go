package lock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// slots is a semaphore whose contenders claim a number after they have got a permit.
//
// # Why two holders never have the same number
//
// The number is in the name of a znode that only a claim creates. A claim is one
// transaction, which does three things. It sets the data of the path, at the version that
// was read before the listing. It deletes the contender's lease. And it creates a lease
// with the same sequence number and a slot number in its name. Every claim changes the
// version. So of two claims that found the same number free, the server refuses the later
// one. The path cannot be deleted while a lease exists, so the version never starts again.
//
// The znode with the number is also the permit. So a permit that another client deletes
// leaves no number behind, a guarded write checks both, and a release gives back both. The
// name contains the contender's GUID. So the guarded write of a hold whose znode was
// deleted is refused, even if another contender has the number by then.
//
// # Why a permit finds a number
//
// A contender with a number has a permit, and a contender with a permit is among the first
// n of the wait queue. So at most n-1 others have a number, and one of n is free. This
// does not hold after the last sequence number of a path: the order is then that of
// creation, and a claim creates the znode again. A contender with such a sequence number
// is refused.
//
// # Why a lost reply leaks nothing
//
// The GUID is in the name. So after a sync, a listing shows whether the claim was
// committed, and with which number. A contender that gives up deletes its lease, and the
// znode that its last claim may have created. After the claim, line.Line.Granted decides, as it
// does for every grant.
type slots struct{ *semaphore }

func NewSlots(lines *line.Lines, path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	s, err := newSemaphore("slots", lines, path, cfg, line.Spoken{recipes.ZooKeeper: {line.Lease}})
	if err != nil {
		return nil, err
	}
	if s.Line.Strategy == recipes.Handoff {
		s.Line.Strategy = recipes.Predecessor // the name of a handoff's znode has no GUID, and a claim is no release
	}
	return slots{s}, nil
}

// slotName matches the name of a contender's znode. It is _c_<guid>-lease-<sequence> before
// the claim, and _c_<guid>-slot-<number>-lease-<sequence> after it.
var slotName = regexp.MustCompile(`^(_c_.{36}-)(?:slot-([0-9]+)-)?(` + line.Lease + `[0-9-][0-9]{9,})$`)

// parseSlot returns the name that the contender's znode has before the claim, and the
// number, or -1 before the claim.
func parseSlot(name string) (lease string, number int, ok bool) {
	m := slotName.FindStringSubmatch(name)
	if m == nil {
		return "", 0, false
	}
	number, err := strconv.Atoi(m[2])
	if err != nil {
		number = -1
	}
	return m[1] + m[3], number, true
}

// slotted returns the name that a claim of the number gives to the znode of that lease.
func slotted(lease string, number int) string {
	m := slotName.FindStringSubmatch(lease)
	return fmt.Sprintf("%sslot-%d-%s", m[1], number, m[3])
}

// contender checks that path is a znode of these slots, with a number or without, and
// returns the name that it has before the claim.
func (s slots) contender(path string, numbered bool) (lease string, err error) {
	lease, number, ok := parseSlot(gopath.Base(path))
	if !ok || gopath.Dir(path) != s.Path() || numbered != (number >= 0) {
		return "", s.Failed(fmt.Errorf("resume: %w: %q is not a contender of %s", recipes.ErrInvalid, path, s.Path()))
	}
	return lease, nil
}

func (s slots) Acquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, false) }

func (s slots) TryAcquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, true) }

func (s slots) joins(ctx context.Context, try bool) (recipes.SlotHold, error) {
	longest := s.Path() + strings.Repeat("x", 80) // no znode of a contender has a longer path
	if err := s.Session.TxnFits(s.claimTxn(longest, longest, 0)); err != nil {
		return nil, s.Failed(err) // before the wait
	}
	permit, err := s.enter(ctx, try)
	return s.numbered(ctx, permit, err)
}

func (s slots) numbered(ctx context.Context, permit *line.Hold, err error) (recipes.SlotHold, error) {
	if err != nil {
		return nil, s.Failed(err)
	}
	defer permit.Conclude() // by now the znode that replaces it is held, or is being deleted
	claimed, err := s.claim(ctx, permit)
	return s.granted(ctx, claimed, err, permit.Znode())
}

// claimTxn replaces a lease by a claimed znode, if the data of the path has the version.
func (s slots) claimTxn(lease, claimed string, version int32) (t session.Txn) {
	t.Set(s.Path(), s.word(), version)
	t.Delete(lease, recipes.AnyVersion)
	t.Create(claimed, s.cfg.Data, true)
	return t
}

// granted returns the hold of a claimed znode, unless err is the error of the claim. On an
// error it deletes these znodes, and the claimed one.
func (s slots) granted(ctx context.Context, claimed string, err error, znodes ...string) (recipes.SlotHold, error) {
	var grant *line.Hold
	if err == nil {
		grant, err = s.Line.Granted(ctx, claimed)
	}
	if err == nil {
		return s.hold(grant), nil
	}
	if claimed != "" {
		znodes = append(znodes, claimed)
	}
	select {
	case <-s.Session.Delete(znodes...):
	case <-ctx.Done():
	}
	return nil, s.Failed(err)
}

func (s slots) hold(grant *line.Hold) recipes.SlotHold {
	_, number, _ := parseSlot(gopath.Base(grant.Znode()))
	return slotHold{grant, number}
}

type slotHold struct {
	*line.Hold
	slot int
}

func (h slotHold) Slot() int { return h.slot }

// claim claims the lowest free number, and returns the path of the new znode. On an error,
// claimed is the path of a znode that may exist all the same, or "".
func (s slots) claim(ctx context.Context, permit *line.Hold) (claimed string, err error) {
	lease := gopath.Base(permit.Znode())
	for _, e := range line.Parse([]string{lease}, line.Lease) {
		if e.Exhausted() {
			return "", fmt.Errorf("%w: the sequence numbers of %s are used up; use another path", recipes.ErrLimit, s.Path())
		}
	}
	for {
		if err := permit.Err(); err != nil {
			return claimed, err
		}
		version, err := s.agreed(ctx) // before the path is listed
		if err != nil {
			return claimed, err
		}
		names, err := s.Line.Names(ctx)
		if err != nil {
			return claimed, err
		}
		own, number := lowest(names, lease)
		switch {
		case own != "":
			return s.Child(own), nil
		case !slices.Contains(names, lease):
			return claimed, fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, permit.Znode())
		case number >= s.cfg.Permits:
			return claimed, fmt.Errorf("%w: %d numbers are taken, and a permit is free", recipes.ErrInternal, number)
		}
		claimed = s.Child(slotted(lease, number))
		switch err = s.Session.Commit(ctx, s.claimTxn(permit.Znode(), claimed, version)); {
		case err == nil:
			return claimed, nil
		case errors.Is(err, recipes.ErrNoNode):
			return claimed, fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, permit.Znode())
		case !znode.TryAgain(ctx, s.Session, err):
			return claimed, znode.GivenUp(ctx, s.Session, "claim a number of "+s.Path(), err)
		case errors.Is(err, recipes.ErrUnknownOutcome): // after a sync, it was committed or never will be
			if err := s.Session.Sync(ctx, s.Path()); err != nil {
				return claimed, err
			}
		}
	}
}

// lowest returns the lowest number that is in none of the names. If this contender has a
// number, it returns that one and the name of its znode.
func lowest(names []string, lease string) (own string, number int) {
	taken := make(map[int]bool)
	for _, name := range names {
		switch of, n, ok := parseSlot(name); {
		case ok && n >= 0 && of == lease:
			return name, n
		case ok:
			taken[n] = true
		}
	}
	for taken[number] {
		number++
	}
	return "", number
}

// Resume is line.Line.Resume. The position does not matter: while the znode exists, no
// other contender has its number.
func (s slots) Resume(ctx context.Context, path string, token recipes.Token) (recipes.SlotHold, error) {
	if _, err := s.contender(path, true); err != nil {
		return nil, err
	}
	grant, err := s.Line.ResumeHold(ctx, path, token)
	if err != nil {
		return nil, s.Failed(err)
	}
	return s.hold(grant), nil
}

// ResumeWaiting is line.Line.ResumeWaiting. The contender may have claimed a number before
// its process ended.
func (s slots) ResumeWaiting(ctx context.Context, path string, try bool) (recipes.SlotHold, error) {
	lease, err := s.contender(path, false)
	if err != nil {
		return nil, err
	}
	names, err := s.Line.Names(ctx)
	if err != nil {
		return nil, s.Failed(err)
	}
	own, _ := lowest(names, lease)
	if own == "" {
		permit, err := s.Line.ResumeWaiting(ctx, path, s.Trying(try))
		return s.numbered(ctx, permit, err)
	}
	claimed := s.Child(own)
	if _, err := line.ResumeWaiter(ctx, s.Session, claimed); err != nil {
		return nil, s.Failed(err)
	}
	if s.cfg.Joined != nil {
		s.cfg.Joined(recipes.Place{Znode: path, Position: recipes.UnknownPosition})
	}
	return s.granted(ctx, claimed, nil)
}
