package election

import (
	"context"
	"errors"
	gopath "path"
	"reflect"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

func (e *election) Acknowledged(ctx context.Context) (recipes.Leader, error) {
	for {
		v, err := e.view(ctx)
		if err != nil {
			return recipes.Leader{}, e.Failed(err)
		}
		if v.leader.Acknowledged {
			return v.leader, nil
		}
		err = e.Session.Wait(ctx, "waiting for an acknowledgement", v.leaderChanged.Fired(), v.ackChanged.Fired(), v.disconnected)
		if err != nil {
			return recipes.Leader{}, e.Failed(err)
		}
	}
}

func (e *election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	first, err := e.view(ctx)
	if err != nil {
		return nil, e.Failed(err)
	}
	out := make(chan recipes.Leader)
	started := e.Session.Background(func(life context.Context) {
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		e.observe(ctx, first, out)
	})
	if !started {
		return nil, e.Failed(e.Session.Err())
	}
	return out, nil
}

// observe offers the latest leader to the receiver, and keeps reading changes while it
// does.
func (e *election) observe(ctx context.Context, v view, out chan<- recipes.Leader) {
	offer := out // nil after the receiver has got the latest leader
	for {
		select {
		case offer <- v.leader:
			offer = nil
			continue
		case <-v.leaderChanged.Fired():
		case <-v.ackChanged.Fired():
		case <-v.disconnected:
		case <-ctx.Done():
			return
		}
		next, err := session.RetryThrottled(ctx, e.Session, func() (view, error) { return e.view(ctx) })
		if err != nil {
			if ctx.Err() == nil {
				e.Session.Log().Error("observing ended", "election", e.Path(), "error", err)
			}
			return
		}
		if !reflect.DeepEqual(next.leader, v.leader) {
			offer = out
		}
		v = next
	}
}

// view is the leader, and the watches that report a change of it.
type view struct {
	leader        recipes.Leader
	disconnected  <-chan struct{}
	leaderChanged *session.Watch
	ackChanged    *session.Watch
}

// view reads the leader, with watches on its znode and on its acknowledgement. So
// candidates that come and go behind the leader wake no observer. If there is no
// candidate, view watches the list of candidates.
func (e *election) view(ctx context.Context) (view, error) {
	for {
		disconnected, err := e.Session.Connected(ctx)
		if err != nil {
			return view{}, err
		}
		v, err := e.read(ctx, e.Session.GetW)
		switch {
		case err != nil:
		case v.leader.None():
			v, err = e.awaitCandidates(ctx)
		case !v.leader.Acknowledged:
			v.ackChanged, err = e.awaitAcknowledgement(ctx, ackPath(v.leader.Znode, v.leader.Token))
		}
		if errors.Is(err, znode.ErrReadAgain) {
			continue
		}
		v.disconnected = disconnected
		return v, err
	}
}

// awaitAcknowledgement watches the list of acknowledgements, or for the creation of their
// parent.
func (e *election) awaitAcknowledgement(ctx context.Context, ack string) (*session.Watch, error) {
	s, acks := e.Session, gopath.Dir(ack)
	names, changed, err := s.ChildrenW(ctx, acks)
	if errors.Is(err, recipes.ErrNoNode) {
		var exists bool
		if exists, changed, err = s.ExistsW(ctx, acks); err == nil && exists {
			err = znode.ErrReadAgain
		}
	} else if err == nil && slices.Contains(names, gopath.Base(ack)) {
		err = znode.ErrReadAgain
	}
	return changed, err
}

// awaitCandidates watches the list of candidates, or for the creation of the path.
func (e *election) awaitCandidates(ctx context.Context) (view, error) {
	s := e.Session
	names, changed, err := s.ChildrenW(ctx, e.Path())
	if errors.Is(err, recipes.ErrNoNode) {
		exists, created, err := s.ExistsW(ctx, e.Path())
		if err == nil && exists {
			err = znode.ErrReadAgain
		}
		return view{leaderChanged: created, ackChanged: created}, err
	}
	if err == nil && e.Line.HasContender(names) {
		err = znode.ErrReadAgain
	}
	return view{leaderChanged: changed, ackChanged: changed}, err
}
