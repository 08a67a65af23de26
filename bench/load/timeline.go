package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type timed struct {
	Load
	started time.Time
	parent  context.Context // outlives the timeline
	series  *timeline.Recorder
	cuts    chan timeline.Fault // holders to cut off: the next contender that is granted takes one

	mu     sync.Mutex
	m      Measurement
	holder *seat // nil if there is none
	token  recipes.Token
	left   time.Duration // when the latest holder asked to leave; -1 if it was lost
}

// seat is a contender whose session can be replaced.
type seat struct {
	id      int // from 1
	session recipes.Client
	acquire func(context.Context) (grant, error)
	joined  time.Duration // when it last joined the line
}

func (s *seat) lost() bool {
	select {
	case <-s.session.Done():
		return true
	default:
		return false
	}
}

func (l Load) timeline(ctx context.Context) (Measurement, error) {
	if l.Duration <= 0 || l.Reopen == nil {
		return Measurement{}, errors.New("a timeline needs Load.Duration and Load.Reopen")
	}
	for _, f := range l.Faults {
		if f.Server() && l.Server == nil || !f.Server() && l.Kill == nil {
			return Measurement{}, fmt.Errorf("fault %v: Load.Server or Load.Kill is nil", f)
		}
	}
	t := &timed{
		Load: l, parent: ctx, series: timeline.NewRecorder(l.Duration), m: newRecorder().m,
		cuts: make(chan timeline.Fault, len(l.Faults)), left: -1,
	}
	if err := l.Begin(ctx); err != nil {
		return Measurement{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t.started = time.Now()
	over := time.AfterFunc(l.Duration, func() {
		t.series.End(l.Duration)
		stop(errOver)
	})
	defer over.Stop()
	group, ctx := errgroup.WithContext(ctx)
	for i, session := range l.Sessions {
		group.Go(func() error { return t.contend(ctx, &seat{id: i + 1}, session) })
	}
	group.Go(func() error { return t.faults(ctx) })
	if err := group.Wait(); err != nil {
		return Measurement{}, err
	}
	close(t.cuts)
	for fault := range t.cuts {
		t.series.Miss(fault)
	}
	if t.m.Operations == 0 {
		return Measurement{}, fmt.Errorf("nothing was granted within %v", l.Duration)
	}
	t.m.Elapsed, t.m.Timeline = l.Duration, t.series.Series()
	return t.m, l.End(t.parent)
}

func (t *timed) now() time.Duration { return time.Since(t.started) }

func (t *timed) contend(ctx context.Context, s *seat, session recipes.Client) error {
	for {
		err := t.seated(ctx, s, session)
		broken := (*Violation)(nil)
		switch {
		case errors.As(err, &broken):
			return err
		case errors.Is(context.Cause(ctx), errOver):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, recipes.ErrSessionLost) && !s.lost():
			return fmt.Errorf("contender %d: %w", s.id, err)
		}
		t.series.Lost(t.now())
		if session, err = t.reopen(ctx, s.id-1); err != nil {
			if errors.Is(context.Cause(ctx), errOver) {
				return nil
			}
			return fmt.Errorf("contender %d opens another session: %w", s.id, err)
		}
	}
}

const reopenPause = 100 * time.Millisecond

func (t *timed) reopen(ctx context.Context, i int) (recipes.Client, error) {
	for {
		session, err := t.Reopen(ctx, i)
		if err == nil || !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrSessionLost) {
			return session, err
		}
		if err := pause(ctx, reopenPause); err != nil {
			return nil, err
		}
	}
}

// seated takes turns with one session. It always returns an error.
func (t *timed) seated(ctx context.Context, s *seat, session recipes.Client) (err error) {
	t.mu.Lock()
	if t.holder == s { // this hold was lost, and no other contender has been granted since
		t.holder, t.left = nil, -1
	}
	s.session = session
	t.mu.Unlock()
	if s.acquire, err = t.acquireFunc(session, func(recipes.Place) { s.joined = t.now() }); err != nil {
		return err
	}
	for err == nil {
		err = t.takeTurn(ctx, s)
	}
	return err
}

func (t *timed) takeTurn(ctx context.Context, s *seat) error {
	asked := t.now()
	held, err := s.acquire(ctx)
	granted := t.now()
	if err != nil {
		return err
	}
	if err := t.granted(s, held.token, asked, granted); err != nil {
		return err
	}
	select {
	case fault := <-t.cuts:
		return t.cutOff(ctx, s, fault)
	default:
	}
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	if err := t.leaving(s); err != nil {
		return err
	}
	if err := held.release(ctx); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// granted checks and records a grant. A holder whose session has reported its loss no longer
// holds.
func (t *timed) granted(s *seat, token recipes.Token, asked, granted time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != nil {
		if !t.holder.lost() {
			return &Violation{"mutual exclusion", fmt.Sprintf(
				"contender %d was granted while contender %d held and had not reported the loss of its session", s.id, t.holder.id)}
		}
		t.left = -1
	}
	if token <= t.token {
		return &Violation{"growing tokens", fmt.Sprintf("contender %d was granted with token %d after token %d", s.id, token, t.token)}
	}
	handoff := time.Duration(-1)
	if t.left > s.joined { // after a lost holder, t.left is negative
		handoff = max(0, granted-t.left)
	}
	t.holder, t.token = s, token
	if !t.series.Grant(granted, granted-asked, handoff) {
		return nil
	}
	t.m.Operations++
	histogram.Record(t.m.Wait, granted-asked)
	if handoff >= 0 {
		histogram.Record(t.m.Handoff, handoff)
	}
	return nil
}

func (t *timed) keep(ctx context.Context, s *seat) error {
	if t.Hold <= 0 {
		return nil
	}
	timer := time.NewTimer(t.Hold)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.session.Done():
		return s.session.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leaving records that a holder is about to leave. If it finds another holder, its own session
// must have been lost.
func (t *timed) leaving(s *seat) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != s {
		if err := s.session.Err(); err != nil {
			return err
		}
		return &Violation{"mutual exclusion", fmt.Sprintf("contender %d found contender %d in its place when it left", s.id, t.holder.id)}
	}
	t.holder, t.left = nil, t.now()
	return nil
}

func (t *timed) cutOff(ctx context.Context, s *seat, fault timeline.Fault) error {
	t.series.Fault(t.now(), fault)
	if err := t.Kill(ctx, s.id-1); err != nil {
		return fmt.Errorf("cut off: %w", err)
	}
	select {
	case <-s.session.Done():
		return s.session.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// faults lets the faults happen. It returns when all killed servers serve again.
func (t *timed) faults(ctx context.Context) error {
	var back chan error // of the latest killed server; nil if all serve
	next := func(fault timeline.Fault) error {
		if err := pause(ctx, fault.At-t.now()); err != nil {
			return err
		}
		if !fault.Server() {
			t.cuts <- fault
			return nil
		}
		if back != nil { // only one server may be down
			select {
			case err := <-back:
				if back = nil; err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		server, err := t.Server(ctx, fault.Victim)
		if err != nil {
			return fmt.Errorf("fault %v: %w", fault, cmp.Or(context.Cause(ctx), err))
		}
		back = make(chan error, 1)
		return t.kill(ctx, fault, server, back)
	}
	var failed error
	for i, fault := range t.Faults {
		if failed = next(fault); failed != nil {
			t.series.Miss(t.Faults[i:]...)
			break
		}
	}
	if errors.Is(failed, errOver) {
		failed = nil
	}
	if back != nil {
		failed = cmp.Or(failed, <-back)
	}
	return failed
}

// kill kills a server, and starts it again later, at the latest when the timeline is over. It then
// sends to back.
func (t *timed) kill(ctx context.Context, fault timeline.Fault, server timeline.Server, back chan<- error) error {
	n := t.series.Fault(t.now(), fault)
	if err := server.Kill(); err != nil {
		back <- nil
		return fmt.Errorf("fault %v: %w", fault, err)
	}
	go func() {
		_ = pause(ctx, fault.Restart)
		err := server.Restart(t.parent)
		if err != nil {
			err = fmt.Errorf("fault %v: %w", fault, err)
		}
		t.series.Back(t.now(), n)
		back <- err
	}()
	return nil
}
