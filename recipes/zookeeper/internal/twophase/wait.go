package twophase

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	var d recipes.Decision
	var err error
	if s.protocol.Variant == recipes.AllWatch {
		d, err = s.collect(ctx, s.protocol)
	} else {
		d, err = s.follow(ctx, s.protocol)
	}
	return d, s.failed(err)
}

func (t *twoPhase) Coordinate(ctx context.Context) (recipes.Decision, error) {
	return t.CoordinateAs(ctx, "")
}

// CoordinateAs is Coordinate for the transaction of that ID, or for any one if id is empty.
// If another transaction has begun since, the error matches recipes.ErrNoTransaction, and
// the session does not resign.
func (t *twoPhase) CoordinateAs(ctx context.Context, id string) (recipes.Decision, error) {
	p, err := t.protocol(ctx)
	if err == nil && id != "" {
		if err := t.checkID(p, id); err != nil {
			return recipes.Decision{}, t.failed(err)
		}
	}
	var d recipes.Decision
	if err == nil {
		d, err = t.collect(ctx, p)
	}
	if err == nil {
		return d, nil
	}
	if p.Variant != recipes.AllWatch { // the variant may still be unknown
		t.resign()
	}
	return recipes.Decision{}, t.failed(err)
}

// follow waits for the decision of a coordinator. If there is no coordinator, this session
// tries to become it, by creating its znode.
func (t *twoPhase) follow(ctx context.Context, p protocol) (recipes.Decision, error) {
	for {
		disconnected, err := t.Session.Connected(ctx)
		if err != nil {
			return recipes.Decision{}, err
		}
		decided, changed, err := t.Session.ExistsW(ctx, t.Child(decisionName))
		if err != nil {
			return recipes.Decision{}, err
		}
		if decided {
			return t.decided(ctx, p)
		}
		coordinated, gone, err := t.Session.ExistsW(ctx, t.Child(coordinatorName))
		if err != nil {
			return recipes.Decision{}, err
		}
		if !coordinated {
			replaced, err := t.replace(ctx, p)
			if err == nil && !replaced {
				continue
			}
			var d recipes.Decision
			if err == nil {
				d, err = t.collect(ctx, p)
			}
			if err != nil {
				t.resign()
			}
			return d, err
		}
		if err := t.wait(ctx, disconnected, changed, gone); err != nil {
			return recipes.Decision{}, err
		}
		if fired(changed) { // only the creation of the decision fires it
			return t.decided(ctx, p)
		}
	}
}

// decided returns the decision. The caller has found that it exists.
func (t *twoPhase) decided(ctx context.Context, p protocol) (recipes.Decision, error) {
	d, decided, err := t.decision(ctx, p)
	if err == nil && !decided {
		err = recipes.ErrNoTransaction // all sites were done, and the transaction was deleted
	}
	return d, err
}

// replace makes this session the coordinator, if no session is.
func (t *twoPhase) replace(ctx context.Context, p protocol) (bool, error) {
	claim := t.guard(p)
	claim.Create(t.Child(coordinatorName), nil, true)
	at, err := t.commit(ctx, claim)
	if at != 0 || !errors.Is(err, recipes.ErrNodeExists) {
		return err == nil, err
	}
	// Another session has created it, or this one in an attempt whose reply was lost.
	stat, err := t.Session.Stat(ctx, t.Child(coordinatorName))
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil && stat.EphemeralOwner == t.Session.ID(), err
}

// resign deletes the coordinator's znode in the background, if it is this session's. A
// coordinator that does not count keeps all sites waiting, and this session too, if it
// waits again. If another call of this session still counts, then two sessions count,
// which is harmless.
func (t *twoPhase) resign() {
	t.Session.Background(func(life context.Context) {
		path := t.Child(coordinatorName)
		stat, err := session.RetryThrottled(life, t.Session, func() (session.Stat, error) {
			if err := t.Session.Sync(life, path); err != nil {
				return session.Stat{}, err
			}
			return t.Session.Stat(life, path)
		})
		if err == nil && stat.EphemeralOwner == t.Session.ID() {
			t.Session.DeleteOwned(path, stat)
		}
	})
}

func (t *twoPhase) wait(ctx context.Context, disconnected <-chan struct{}, watches ...*session.Watch) error {
	return t.Session.Wait(ctx, "waiting for the decision", append(znode.Events(watches...), disconnected)...)
}

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }
