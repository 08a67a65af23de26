package twophase

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func (s *site) Wait(ctx context.Context) (recipes.Decision, error) {
	var d recipes.Decision
	var err error
	if s.protocol.Variant == recipes.AllWatch {
		d, err = s.collect(ctx, s.protocol)
	} else {
		d, err = s.follow(ctx, s.protocol)
	}
	if err != nil {
		return recipes.Decision{}, s.failed(err)
	}
	return d, nil
}

func (t *twoPhase) Coordinate(ctx context.Context) (recipes.Decision, error) {
	return t.CoordinateAs(ctx, "")
}

// CoordinateAs is Coordinate for the transaction of that ID, if it is not empty. If
// another one has begun since, the error matches recipes.ErrNoTransaction, and the
// coordinator's place is left alone.
func (t *twoPhase) CoordinateAs(ctx context.Context, id string) (recipes.Decision, error) {
	p, err := t.protocol(ctx)
	if err == nil && id != "" {
		if err := t.is(p, id); err != nil {
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

// follow waits for the decision of a coordinator. If there is no coordinator it takes its
// place: the session that creates the znode is the next one.
func (t *twoPhase) follow(ctx context.Context, p protocol) (recipes.Decision, error) {
	for {
		disconnected, err := t.session.Connected(ctx)
		if err != nil {
			return recipes.Decision{}, err
		}
		decided, changed, err := t.session.ExistsW(ctx, t.child(decisionName))
		if err != nil {
			return recipes.Decision{}, err
		}
		if decided {
			return t.decided(ctx, p)
		}
		coordinated, gone, err := t.session.ExistsW(ctx, t.child(coordinatorName))
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

// decided returns the decision that was seen.
func (t *twoPhase) decided(ctx context.Context, p protocol) (recipes.Decision, error) {
	d, decided, err := t.decision(ctx, p)
	if err == nil && !decided {
		err = recipes.ErrNoTransaction // all were done, and it was deleted
	}
	return d, err
}

// replace makes this session the coordinator's, if there is no coordinator.
func (t *twoPhase) replace(ctx context.Context, p protocol) (bool, error) {
	claim := t.guard(p)
	claim.Create(t.child(coordinatorName), nil, true)
	at, err := t.commit(ctx, claim)
	if at != 0 || !errors.Is(err, recipes.ErrNodeExists) {
		return err == nil, err
	}
	// Another session created it, or this one when the reply was lost.
	stat, err := t.session.Stat(ctx, t.child(coordinatorName))
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil && stat.EphemeralOwner == t.session.ID(), err
}

// resign gives up the coordinator's place in the background, if it is this session's. A
// coordinator that does not count keeps all sites waiting, and this session too, if it
// waits again. If another call of this session still counts, two sessions count then,
// which is harmless.
func (t *twoPhase) resign() {
	t.session.Background(func(life context.Context) {
		path := t.child(coordinatorName)
		stat, err := session.Insist(life, t.session, func() (session.Stat, error) {
			if err := t.session.Sync(life, path); err != nil {
				return session.Stat{}, err
			}
			return t.session.Stat(life, path)
		})
		if err == nil && stat.EphemeralOwner == t.session.ID() {
			t.session.DeleteOwned(path, stat)
		}
	})
}

// wait waits for any of the watches, or the loss of the connection.
func (t *twoPhase) wait(ctx context.Context, disconnected <-chan struct{}, watches ...*session.Watch) error {
	events := []<-chan struct{}{disconnected}
	for _, w := range watches {
		events = append(events, w.Fired())
	}
	return t.session.Wait(ctx, "waiting for the decision", events...)
}

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }
