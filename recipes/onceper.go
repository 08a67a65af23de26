package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// turnKey is the key of the record. Its value is when the last turn that counts began, in
// milliseconds of Unix time, or empty.
const turnKey = "once"

// Turn is a turn of work that is done at most once a period: see [OncePer]. It is safe for concurrent
// use.
type Turn struct {
	grant  Grant
	record Configuration
	began  time.Time
}

// OncePer returns a turn if the period has passed since the last turn that counts. Otherwise the
// error is a *NotDueError. Call it after the grant, and before the work. What the grant excludes is
// what must share the period, so g is a grant to one holder: of a [Lock], a writer or a leader.
//
//	hold, err := lock.Acquire(ctx)
//	...
//	turn, err := recipes.OncePer(ctx, hold, record, 24*time.Hour)
//
// [Turn.Count] decides what counts. A caller that counts after its work has succeeded works again
// after a failure, and after a death before the record: at least once. A caller that counts before
// its work never works twice in a period, and misses one if it fails: at most once.
//
// The record is the key "once" of a configuration, of the session of g. All callers of one lock use
// the same configuration, whose znode must exist. That of the lock's path does: it has the record
// below it. Deleting the record makes the next turn due.
//
// The period counts from the beginning of the turn, and only by the clock of ZooKeeper's leader: it
// is the difference between the times of two writes (mtime). No client's clock matters. Callers that
// come at regular times give a period that is a little shorter. If the leader's clock was set back
// since the last turn, how much of the period has passed is unknown. Then the period starts again,
// and NotDueError.Back says so. If it was set forward, the period is shorter by as much, which
// nothing shows.
//
// If the grant is lost, the error matches ErrNotHeld. If the record has other data, it matches
// ErrMismatch. If the period is not positive, it is ErrInvalid, and nothing is sent. After any error
// the grant is still the caller's, and nothing counts.
//
// It costs two reads and a guarded write, and Count a guarded write. Both repeat a write whose
// outcome is unknown, because it writes the same again.
//
// Source: ShedLock's lockAtLeastFor and kazoo's NonBlockingLease. Both compare clocks of clients.
func OncePer(ctx context.Context, g Grant, record Configuration, period time.Duration) (*Turn, error) {
	if period <= 0 {
		return nil, fmt.Errorf("once per: %w: the period is %v; it must be positive", ErrInvalid, period)
	}
	t := &Turn{grant: g, record: record}
	if err := t.begin(ctx, period); err != nil {
		return nil, fmt.Errorf("once per: %w", err)
	}
	return t, nil
}

// begin reads the record and writes it again, for the time of the write. The session sees what earlier
// holders wrote: they wrote before their znodes were deleted, and the session has seen that.
func (t *Turn) begin(ctx context.Context, period time.Duration) error {
	before, err := t.record.Get(ctx, turnKey)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return err
	}
	last, parsed := strconv.ParseInt(string(before.Value), 10, 64)
	if len(before.Value) > 0 && (parsed != nil || last <= 0) {
		return fmt.Errorf("%w: the key %q of %s has the data %.40q, which is no time; use a path of its own, or delete it", ErrMismatch, turnKey, t.record.Path(), before.Value)
	}
	if err := t.write(ctx, before.Value); err != nil {
		return err
	}
	now, err := t.record.Get(ctx, turnKey)
	if err != nil {
		return err
	}
	t.began = now.Modified
	if last == 0 {
		return nil
	}
	early := &NotDueError{Last: time.UnixMilli(last), Period: period}
	switch passed := now.Modified.Sub(early.Last); {
	case passed >= period:
		return nil
	case passed < 0:
		early.Last, early.Back = now.Modified, -passed
		if err := t.Count(ctx); err != nil {
			return err
		}
	}
	return early
}

// Began is when the turn began, by the clock of ZooKeeper's leader.
func (t *Turn) Began() time.Time { return t.began }

// Count records the turn: until the period after its beginning is over, no other is due. It can be
// called again, to the same effect.
//
// If the grant is lost, the error matches ErrNotHeld. After any error the turn may count or not.
func (t *Turn) Count(ctx context.Context) error {
	if err := t.write(ctx, strconv.AppendInt(nil, t.began.UnixMilli(), 10)); err != nil {
		return fmt.Errorf("count a turn: %w", err)
	}
	return nil
}

// write sets the record under the grant. An unknown outcome is no error: the next attempt writes the
// same.
func (t *Turn) write(ctx context.Context, value []byte) error {
	for exists := true; ; {
		op := Set(turnKey, value, AnyVersion)
		if !exists {
			op = Create(turnKey, value)
		}
		op, err := t.record.Key(op)
		if err == nil {
			err = t.grant.Write(ctx, op)
		}
		switch {
		case exists && errors.Is(err, ErrNoNode):
			exists = false
		case !exists && errors.Is(err, ErrNodeExists):
			exists = true
		case !errors.Is(err, ErrUnknownOutcome):
			return err
		default:
			if over := cmp.Or(ctx.Err(), t.grant.Err()); over != nil {
				return fmt.Errorf("%w: %w", over, err)
			}
		}
	}
}

// NotDueError means that the period has not passed since the last turn that counts.
type NotDueError struct {
	// Last is when that turn began, by the clock of ZooKeeper's leader. If Back is not zero, it
	// is when the period has started again.
	Last   time.Time
	Period time.Duration
	// Back is how far the leader's clock is behind the beginning of the last turn. 0: it is not.
	Back time.Duration
}

func (e *NotDueError) Error() string {
	due := e.Last.Add(e.Period).UTC().Format(time.RFC3339)
	if e.Back > 0 {
		return fmt.Sprintf("the clock of ZooKeeper's leader was set back by %v or more since the last turn, so the period of %v has started again: due at %s", e.Back, e.Period, due)
	}
	return fmt.Sprintf("done at %s, at most once per %v: due at %s", e.Last.UTC().Format(time.RFC3339), e.Period, due)
}
