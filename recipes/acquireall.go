package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holds is the hold of several locks: see [AcquireAll]. Done closes, and Err has the reason, when
// the first of them is lost. Token and Znode are those of the last path in order.
//
// Write commits the operations in one transaction with a check of every hold. So they happen only
// if all are held. Release releases all of them, even if one fails, and joins their errors.
type Holds interface {
	Hold

	// Tokens returns the fencing token of each path. A store compares the tokens of one path
	// only: of two sets with a path in common, the later one has the larger token of that path.
	Tokens() map[string]Token
}

// AcquireAll acquires several locks of one session and returns when it holds all of them. A
// [Semaphore] is a Lock too.
//
// It acquires them one after the other, in the order of their paths. So callers that want
// overlapping sets cannot deadlock, provided that they take their locks only by AcquireAll, one
// call each, and have the same chroot. It holds the first locks while it waits for the others.
//
// On an error nothing is held: it has released what it had acquired, as Hold.Release does. The
// error names the path. If a hold is lost while it waits for the next lock, that is the error.
// Without a lock, with two locks of one path, or with locks of two sessions, the error is
// ErrInvalid, and nothing is sent.
//
// It costs what each Acquire costs, and a watch for each hold.
//
// Source: Curator's InterProcessMultiLock, which takes the locks in the caller's order, so that two
// callers can deadlock, and has no transaction over them.
func AcquireAll(ctx context.Context, locks ...Lock) (Holds, error) {
	locks = slices.SortedFunc(slices.Values(locks), func(a, b Lock) int { return cmp.Compare(a.Path(), b.Path()) })
	if len(locks) == 0 {
		return nil, fmt.Errorf("acquire all: %w: name at least one lock", ErrInvalid)
	}
	for i, l := range locks {
		if i > 0 && l.Path() == locks[i-1].Path() {
			return nil, fmt.Errorf("acquire all: %w: two locks have the path %s; name each path once", ErrInvalid, l.Path())
		}
		if l.SessionID() != locks[0].SessionID() {
			return nil, fmt.Errorf("acquire all: %w: %s is a lock of session %#x, and %s of session %#x; use one session",
				ErrInvalid, locks[0].Path(), locks[0].SessionID(), l.Path(), l.SessionID())
		}
	}
	all := &holds{lost: context.Background()}
	for _, l := range locks {
		hold, err := all.acquire(ctx, l)
		if err == nil {
			all.held = append(all.held, held{l.Path(), hold})
			all.lost, _ = WithHold(all.lost, hold) // ends with the hold
			err = all.Err()
		}
		if err != nil {
			if back := all.Release(ctx); back != nil && !errors.Is(back, ErrNotHeld) && ctx.Err() == nil {
				err = fmt.Errorf("%w; and what was acquired before could not be released: %w", err, back)
			}
			return nil, fmt.Errorf("acquire all: %s: %w", l.Path(), err)
		}
	}
	return all, nil
}

type holds struct {
	held []held          // in the order of paths
	lost context.Context // ends when one of them does
}

type held struct {
	path string
	Hold
}

// acquire acquires the next lock. It stops if one of the others is lost.
func (h *holds) acquire(ctx context.Context, l Lock) (Hold, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	before := holds{held: h.held} // h may grow while the function still runs
	defer context.AfterFunc(h.lost, func() { cancel(before.Err()) })()
	hold, err := l.Acquire(waiting)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		err = context.Cause(waiting)
	}
	return hold, err
}

func (h *holds) last() held            { return h.held[len(h.held)-1] }
func (h *holds) Token() Token          { return h.last().Token() }
func (h *holds) Znode() string         { return h.last().Znode() }
func (h *holds) Done() <-chan struct{} { return h.lost.Done() }

func (h *holds) Tokens() map[string]Token {
	tokens := make(map[string]Token)
	for _, one := range h.held {
		tokens[one.path] = one.Token()
	}
	return tokens
}

func (h *holds) Err() error {
	for _, one := range h.held {
		if err := one.Err(); err != nil {
			return fmt.Errorf("%s: %w", one.path, err)
		}
	}
	return nil
}

func (h *holds) ValidUntil() time.Time {
	first := slices.MinFunc(h.held, func(a, b held) int { return a.ValidUntil().Compare(b.ValidUntil()) })
	return first.ValidUntil()
}

func (h *holds) Write(ctx context.Context, ops ...Op) error {
	if err := h.Err(); err != nil {
		return fmt.Errorf("guarded write: %w", err)
	}
	others := h.held[1:]
	var guarded []Op
	for _, one := range others {
		guarded = append(guarded, Held(one.Hold))
	}
	err := h.held[0].Write(ctx, append(guarded, ops...)...)
	refused, ok := errors.AsType[*WriteError](err)
	switch {
	case !ok:
		return err
	case refused.Index < len(others):
		return fmt.Errorf("guarded write: %s: %w", others[refused.Index].path, refused.Err)
	}
	return &WriteError{Index: refused.Index - len(others), Op: refused.Op, Err: refused.Err}
}

func (h *holds) Release(ctx context.Context) error {
	errs := make([]error, len(h.held))
	var releases sync.WaitGroup
	for i, one := range h.held {
		releases.Go(func() {
			if err := one.Release(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", one.path, err)
			}
		})
	}
	releases.Wait()
	return errors.Join(errs...)
}
