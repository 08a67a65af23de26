package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// turnKey is the key of the record. Its value is the time at which the last counted turn
// began, in milliseconds of Unix time, or empty.
const turnKey = "once"

// Turn is a turn of work that is done at most once a period: see [OncePer]. It is safe for concurrent
// use.
type Turn struct {
	grant  Grant
	record Configuration
	began  Entry // the record after the write that began the turn
}

// OncePer returns a turn if the period has passed since the last turn that was counted. Otherwise
// the error is a *NotDueError. Call it after the grant, and before the work. All callers that share
// the period must exclude each other, so g is a grant to one holder at a time: of a [Lock], a
// writer or a leader.
//
//	hold, err := lock.Acquire(ctx)
//	...
//	turn, err := recipes.OncePer(ctx, hold, record, 23*time.Hour)
//
// [Turn.Count] decides what counts. A caller that counts after its work has succeeded works again
// after a failure, and after a death before the record: at least once. A caller that counts before
// its work never works twice in a period, and misses one if it fails: at most once.
//
// The record is the key "once" of a configuration that belongs to the session of g. All callers of
// one lock use the same configuration, whose znode must exist. The lock's own path can be used: its
// znode exists, and the record is then below it. Deleting the record makes the next turn due.
//
// The period counts from the beginning of the turn, and only by the clock of ZooKeeper's leader: it
// is the difference between the times of two writes (mtime). No client's clock matters. For a job
// that runs every 24 hours, give 23h. If the leader's clock was set back since the last turn, how
// much of the period has passed is unknown. Then the period starts again, and NotDueError.Back says
// so. If it was set forward, the period is shorter by as much, and this is not reported.
//
// If the grant is lost, the error matches ErrNotHeld. If the record has other data, it matches
// ErrMismatch. If the period is not positive, it is ErrInvalid, and nothing is sent. After any error
// the grant is still the caller's, and nothing counts.
//
// A turn is exclusive only while its grant is held. If the grant is lost before OncePer returns, a
// turn of the next holder may count already. Then Count fails.
//
// It costs two reads and a guarded write, and Count a guarded write. Both read again and repeat a write
// whose outcome is unknown. Each write compares the version that was read, so one that arrives late
// changes nothing.
//
// It is not a method of Lock, because it works with any grant, and the caller ends the hold and
// counts the turn separately.
//
// Source: ShedLock's lockAtLeastFor and kazoo's NonBlockingLease. Both compare clocks of clients.
func OncePer(ctx context.Context, g Grant, record Configuration, period time.Duration) (*Turn, error) {
	if period <= 0 {
		return nil, fmt.Errorf("once per: %w: the period is %v; it must be positive", ErrInvalid, period)
	}
	t := &Turn{grant: g, record: record}
	if err := t.checkDue(ctx, period); err != nil {
		return nil, fmt.Errorf("once per: %w", err)
	}
	return t, nil
}

// checkDue writes the record as it is, for the time of the write. The value and its time come from one
// read after that. If the grant was lost before that read, they may be those of the next holder.
func (t *Turn) checkDue(ctx context.Context, period time.Duration) error {
	var last time.Time
	for written := false; ; {
		record, err := t.read(ctx)
		if err == nil {
			last, err = t.last(record)
		}
		if err != nil {
			return err
		}
		if written && !record.None() {
			t.began = record
			break
		}
		err = t.write(ctx, record, record.Value)
		if err != nil && !t.again(record, err) {
			return err
		}
		written = err == nil
	}
	if last.IsZero() {
		return nil
	}
	early := &NotDueError{Last: last, Period: period}
	switch passed := t.Began().Sub(last); {
	case passed >= period:
		return nil
	case passed < 0:
		early.Last, early.Back = t.Began(), last.Sub(t.Began()) // not -passed, which overflows
		if err := t.Count(ctx); err != nil {
			return err
		}
	}
	return early
}

// last returns the time at which the last counted turn began. It is zero if the record is
// empty.
func (t *Turn) last(record Entry) (time.Time, error) {
	if len(record.Value) == 0 {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(string(record.Value), 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, fmt.Errorf("%w: the key %q of %s has the data %.40q instead of a time; use a path of its own, or delete it", ErrMismatch, turnKey, t.record.Path(), record.Value)
	}
	return time.UnixMilli(ms), nil
}

// Began is when the turn began, by the clock of ZooKeeper's leader.
func (t *Turn) Began() time.Time { return t.began.Modified }

// Count records the turn: no other turn is due until the period has passed since this one began.
// It can be called again, to the same effect.
//
// If the grant is lost, the error matches ErrNotHeld. After any error the turn may count or not.
func (t *Turn) Count(ctx context.Context) error {
	value := strconv.AppendInt(nil, t.Began().UnixMilli(), 10)
	for record := t.began; !bytes.Equal(record.Value, value); {
		err := t.write(ctx, record, value)
		if err == nil {
			return nil
		}
		if t.again(record, err) {
			record, err = t.read(ctx)
		}
		if err != nil {
			return fmt.Errorf("count a turn: %w", err)
		}
	}
	return nil
}

// read reads the record. It is None if it does not exist.
func (t *Turn) read(ctx context.Context) (Entry, error) {
	record, err := t.record.Get(ctx, turnKey)
	if errors.Is(err, ErrNoNode) {
		return Entry{}, nil
	}
	if lost := t.grant.Err(); err != nil && lost != nil {
		err = fmt.Errorf("%w: %w", lost, err)
	}
	return record, err
}

// write sets the record under the grant, if it is as it was read. So a write that arrives late, when
// its outcome has long been unknown, does not undo a later one.
func (t *Turn) write(ctx context.Context, read Entry, value []byte) error {
	op := Set(turnKey, value, read.Version)
	if read.None() {
		op = Create(turnKey, value)
	}
	op, err := t.record.Key(op)
	if err != nil {
		return err
	}
	return t.grant.Write(ctx, op)
}

// again reports whether to read the record again after the error of a write: its outcome is unknown, or
// the record is not as it was read. If the grant is lost, the next write fails.
func (t *Turn) again(read Entry, err error) bool {
	return errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) && !read.None()
}

// NotDueError means that the period has not passed since the last turn that was counted.
type NotDueError struct {
	// Last is when that turn began, by the clock of ZooKeeper's leader. If Back is not zero, it
	// is when the period has started again.
	Last   time.Time
	Period time.Duration
	// Back is how far the leader's clock is behind the beginning of the last turn, or the longest
	// Duration if that is further. 0: it is not behind.
	Back time.Duration
}

func (e *NotDueError) Error() string {
	due := e.Last.Add(e.Period).UTC().Format(time.RFC3339)
	if e.Back > 0 {
		return fmt.Sprintf("the clock of ZooKeeper's leader was set back by %v or more since the last turn, so the period of %v has started again: due at %s", e.Back, e.Period, due)
	}
	return fmt.Sprintf("done at %s, at most once per %v: due at %s", e.Last.UTC().Format(time.RFC3339), e.Period, due)
}
