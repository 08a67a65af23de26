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
			return recipes.Leader{}, e.failed(err)
		}
		if v.leader.Acknowledged {
			return v.leader, nil
		}
		err = e.line.Session.Wait(ctx, "waiting for an acknowledgement", v.leaderChanged.Fired(), v.ackChanged.Fired(), v.disconnected)
		if err != nil {
			return recipes.Leader{}, e.failed(err)
		}
	}
}

func (e *election) Observe(ctx context.Context) (<-chan recipes.Leader, error) {
	first, err := e.view(ctx)
	if err != nil {
		return nil, e.failed(err)
	}
	out := make(chan recipes.Leader)
	started := e.line.Session.Background(func(life context.Context) {
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		e.observe(ctx, first, out)
	})
	if !started {
		return nil, e.failed(e.line.Session.Err())
	}
	return out, nil
}

// observe offers the latest view until a reader takes it, and looks for the next
// one in the meantime.
func (e *election) observe(ctx context.Context, v view, out chan<- recipes.Leader) {
	offer := out // nil when a reader has the present view
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
		next, err := session.Insist(ctx, e.line.Session, func() (view, error) { return e.view(ctx) })
		if err != nil {
			if ctx.Err() == nil {
				e.line.Session.Log().Error("observing ended", "election", e.line.Path, "error", err)
			}
			return
		}
		if !reflect.DeepEqual(next.leader, v.leader) {
			offer = out
		}
		v = next
	}
}

// view is the leader as it was read, and the watches that report a change.
type view struct {
	leader        recipes.Leader
	disconnected  <-chan struct{}
	leaderChanged *session.Watch
	ackChanged    *session.Watch
}

// view reads the leader with watches on its znode and on its acknowledgement, so
// that candidates behind it wake no observer when they come and go. If there is no
// candidate, it watches the list of candidates.
func (e *election) view(ctx context.Context) (view, error) {
	for {
		disconnected, err := e.line.Session.Connected(ctx)
		if err != nil {
			return view{}, err
		}
		v, err := e.look(ctx)
		if errors.Is(err, recipes.ErrNoNode) || errors.Is(err, znode.ErrReadAgain) {
			continue
		}
		v.disconnected = disconnected
		return v, err
	}
}

func (e *election) look(ctx context.Context) (view, error) {
	s := e.line.Session
	entries, err := e.line.Entries(ctx)
	if err != nil {
		return view{}, err
	}
	if len(entries) == 0 {
		return e.awaitCandidates(ctx)
	}
	path := gopath.Join(e.line.Path, entries[0].Name)
	node, leaderChanged, err := s.GetW(ctx, path)
	if err != nil {
		return view{}, err
	}
	v := view{
		leader:        e.leaderOf(path, entries[0], node),
		leaderChanged: leaderChanged,
	}
	ack, ackChanged, err := s.GetW(ctx, ackPath(path, v.leader.Token))
	switch {
	case err == nil:
		v.leader.Acknowledged, v.leader.Acknowledgement = true, ack.Data
	case errors.Is(err, recipes.ErrNoNode):
		ackChanged, err = e.awaitAcknowledgement(ctx, ackPath(path, v.leader.Token))
	}
	v.ackChanged = ackChanged
	return v, err
}

// awaitAcknowledgement watches the list of acknowledgements, or for its parent if
// that does not exist.
func (e *election) awaitAcknowledgement(ctx context.Context, ack string) (*session.Watch, error) {
	s, acks := e.line.Session, gopath.Dir(ack)
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

// awaitCandidates watches the list of candidates, or for the path itself if that
// does not exist.
func (e *election) awaitCandidates(ctx context.Context) (view, error) {
	s := e.line.Session
	names, changed, err := s.ChildrenW(ctx, e.line.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		exists, created, err := s.ExistsW(ctx, e.line.Path)
		if err == nil && exists {
			err = znode.ErrReadAgain
		}
		return view{leaderChanged: created, ackChanged: created}, err
	}
	if err == nil && e.line.Stands(names) {
		err = znode.ErrReadAgain
	}
	return view{leaderChanged: changed, ackChanged: changed}, err
}
