package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Acquisition is one acquisition of a replay.
type Acquisition struct {
	At      time.Duration // from the start of the replay
	Hold    time.Duration // how long the grant is kept
	Session int           // the index in Load.Sessions
}

// Replay requests the acquisitions at their times, whether or not earlier ones have been granted.
// They must be in the order of At. It needs only Path, Recipe, Strategy and Sessions of the load, and
// checks each grant as Run does. Replays of several paths with the same start play at the same time,
// and may share sessions.
//
// A wait counts from the scheduled time. After the last acquisition Replay waits for grants for
// patience, and cancels those that still wait: Measurement.Unfinished counts them. The measurement
// has no Counters. When Replay returns, no contender waits and none holds, unless there is an error.
func (l Load) Replay(ctx context.Context, start time.Time, all []Acquisition, patience time.Duration) (Measurement, error) {
	contenders, err := l.contenders(func(int64) {})
	if err != nil {
		return Measurement{}, err
	}
	o := &open{Load: l, contenders: contenders}
	rec, last := newRecorder(), start
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	group, gctx := errgroup.WithContext(ctx)
	for _, a := range all {
		last = start.Add(a.At)
		if err = pause(gctx, time.Until(last)); err != nil {
			break
		}
		if err = o.begin(gctx, group, contenders[a.Session], start, last, a.Hold, rec); err != nil {
			stop(err)
			break
		}
	}
	given := time.AfterFunc(time.Until(last.Add(patience)), func() { stop(errGaveUp) })
	defer given.Stop()
	if waited := group.Wait(); err == nil || errors.Is(waited, ErrBroken) {
		err = waited
	}
	if err != nil {
		return Measurement{}, fmt.Errorf("replay %s: %w", l.Path, err)
	}
	return rec.m, o.guard.check(o.turns.Load())
}
