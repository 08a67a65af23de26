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

// slots is a semaphore whose contenders, when they have a permit, claim a number.
//
// # Why two never have the same number
//
// A number is in the name of a znode that only a claim makes. A claim is one transaction.
// It sets the path's data, if they have the version that was read before the path was
// listed. It deletes the contender's lease, and creates a lease of the same sequence
// number with a slot number in its name. Every claim changes the version. So of two that
// found the same number free the server refuses the later one. While a lease exists the
// path cannot be removed, so the version does not begin again.
//
// The znode that has the number is the permit, too. So a permit that another client
// deletes leaves no number, a guarded write checks both, and a release gives back both.
// The name holds the contender's GUID. So the guarded write of a hold whose znode was
// deleted is refused, although another contender has the number.
//
// # Why a permit finds a number
//
// A contender with a number has a permit, and one with a permit is among the first n of the
// wait queue. So at most n-1 others have a number, and one of n is free. Where sequence
// numbers have come to an end this would not hold: the order is then that of creation, and a
// claim creates again. A contender that has such a number is refused.
//
// # Why a lost reply leaks nothing
//
// The GUID is in the name. So after a sync a listing tells whether the claim was carried
// out, and with which number. A contender that gives up deletes its lease and the znode
// that its last claim may have made. It is told of its number as every grant is told, by
// line.Granted, after the claim.
type slots struct{ *semaphore }

// NewSlots returns the semaphore with numbered permits at path.
func NewSlots(lines *line.Lines, path string, cfg recipes.SemaphoreConfig) (recipes.Slots, error) {
	s, err := newSemaphore("slots", lines, path, cfg, line.Spoken{recipes.ZooKeeper: {line.Lease}})
	if err != nil {
		return nil, err
	}
	s.line.Permits = cfg.Permits
	if s.line.Strategy == recipes.Handoff {
		s.line.Strategy = recipes.Predecessor // a place has no GUID, and a claim is no release
	}
	return slots{s}, nil
}

// slotName matches the name of a contender's znode: _c_<guid>-lease-<sequence> while it
// waits, _c_<guid>-slot-<number>-lease-<sequence> when it has a number.
var slotName = regexp.MustCompile(`^(_c_.{36}-)(?:slot-([0-9]+)-)?(` + line.Lease + `[0-9-][0-9]{9,})$`)

// parseSlot returns the name with which the contender waits, or has waited, and its
// number; -1 if it has none.
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

// slotted is the name of a waiting contender's znode when it has that number.
func slotted(lease string, number int) string {
	m := slotName.FindStringSubmatch(lease)
	return fmt.Sprintf("%sslot-%d-%s", m[1], number, m[3])
}

// contender checks the path of a znode of these slots, which has a number or not, and
// returns the name with which it waits.
func (s slots) contender(path string, numbered bool) (lease string, err error) {
	lease, number, ok := parseSlot(gopath.Base(path))
	if !ok || gopath.Dir(path) != s.line.Path || numbered != (number >= 0) {
		return "", s.failed(fmt.Errorf("resume: %w: %q is not a contender of %s", recipes.ErrInvalid, path, s.line.Path))
	}
	return lease, nil
}

func (s slots) Acquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, false) }

func (s slots) TryAcquire(ctx context.Context) (recipes.SlotHold, error) { return s.joins(ctx, true) }

func (s slots) joins(ctx context.Context, try bool) (recipes.SlotHold, error) {
	longest := s.line.Path + strings.Repeat("x", 80) // of the names of its znodes
	if err := s.line.Session.TxnFits(s.claimTxn(longest, longest, 0)); err != nil {
		return nil, s.failed(err) // before it waits
	}
	permit, err := s.enter(ctx, try)
	return s.numbered(ctx, permit, err)
}

// numbered claims a number for a permit.
func (s slots) numbered(ctx context.Context, permit *line.Hold, err error) (recipes.SlotHold, error) {
	if err != nil {
		return nil, err
	}
	defer permit.Conclude() // when the znode in its place is held, or given up
	claimed, err := s.claim(ctx, permit)
	return s.granted(ctx, claimed, err, permit.Znode())
}

// claimTxn replaces a lease by a claimed znode, if the path's data has the version.
func (s slots) claimTxn(lease, claimed string, version int32) (t session.Txn) {
	t.Set(s.line.Path, s.word(), version)
	t.Delete(lease, recipes.AnyVersion)
	t.Create(claimed, s.cfg.Data, true)
	return t
}

// granted is the hold of a claimed znode, unless err is the error of the claim. On an
// error nothing is left of the contender.
func (s slots) granted(ctx context.Context, claimed string, err error, znodes ...string) (recipes.SlotHold, error) {
	var grant *line.Hold
	if err == nil {
		grant, err = line.Granted(ctx, s.line.Session, claimed, nil)
	}
	if err == nil {
		return s.hold(grant), nil
	}
	if claimed != "" {
		znodes = append(znodes, claimed)
	}
	select {
	case <-s.line.Session.Delete(znodes...):
	case <-ctx.Done():
	}
	return nil, s.failed(err)
}

func (s slots) hold(grant *line.Hold) recipes.SlotHold {
	_, number, _ := parseSlot(gopath.Base(grant.Znode()))
	return slotHold{s.line.Inspected(grant), number}
}

type slotHold struct {
	*line.Hold
	slot int
}

func (h slotHold) Slot() int { return h.slot }

// claim returns the path of the znode that it has claimed, or that it may have claimed
// in spite of an error.
func (s slots) claim(ctx context.Context, permit *line.Hold) (claimed string, err error) {
	client, lease := s.line.Session, gopath.Base(permit.Znode())
	for _, e := range line.Parse([]string{lease}, line.Lease) {
		if e.Exhausted() {
			return "", fmt.Errorf("%w: the sequence numbers of %s have come to an end; use another path", recipes.ErrLimit, s.line.Path)
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
		names, err := s.line.Names(ctx)
		if err != nil {
			return claimed, err
		}
		own, number := lowest(names, lease)
		switch {
		case own != "":
			return gopath.Join(s.line.Path, own), nil
		case !slices.Contains(names, lease):
			return claimed, fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, permit.Znode())
		case number >= s.cfg.Permits:
			return claimed, fmt.Errorf("%w: %d numbers are taken, and a permit is free", recipes.ErrInternal, number)
		}
		claimed = gopath.Join(s.line.Path, slotted(lease, number))
		switch err = client.Commit(ctx, s.claimTxn(permit.Znode(), claimed, version)); {
		case err == nil:
			return claimed, nil
		case errors.Is(err, recipes.ErrNoNode):
			return claimed, fmt.Errorf("claim a number: %w: %s", recipes.ErrRemoved, permit.Znode())
		case !znode.TryAgain(ctx, client, err):
			return claimed, znode.GivenUp(ctx, client, "claim a number of "+s.line.Path, err)
		case errors.Is(err, recipes.ErrUnknownOutcome): // after a sync it has happened, or never will
			if err := client.Sync(ctx, s.line.Path); err != nil {
				return claimed, err
			}
		}
	}
}

// lowest returns the lowest number that is in none of the names, or the one that this
// contender has.
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

// Resume is line.Line.Resume. The znode is the number: while it exists no other contender
// holds the number, whatever its position.
func (s slots) Resume(ctx context.Context, path string, token recipes.Token) (recipes.SlotHold, error) {
	if _, err := s.contender(path, true); err != nil {
		return nil, err
	}
	if _, err := line.ResumeHeld(ctx, s.line.Session, path, token); err != nil {
		return nil, s.failed(err)
	}
	return s.hold(line.Resumed(s.line.Session, path, token, nil)), nil
}

// ResumeWaiting is line.Line.ResumeWaiting. The contender may have claimed a number before
// its process ended.
func (s slots) ResumeWaiting(ctx context.Context, path string, try bool) (recipes.SlotHold, error) {
	lease, err := s.contender(path, false)
	if err != nil {
		return nil, err
	}
	names, err := s.line.Names(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	own, _ := lowest(names, lease)
	if own == "" {
		permit, err := s.resumeWaiting(ctx, path, try)
		return s.numbered(ctx, permit, err)
	}
	claimed := gopath.Join(s.line.Path, own)
	if _, err := line.ResumeWaiter(ctx, s.line.Session, claimed); err != nil {
		return nil, s.failed(err)
	}
	if s.cfg.Joined != nil {
		s.cfg.Joined(recipes.Place{Znode: path, Position: recipes.UnknownPosition})
	}
	return s.granted(ctx, claimed, nil)
}
