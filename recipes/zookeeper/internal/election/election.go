package election

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

const acksName = "acks"

// markers are those of an election. In kazoo, an election is a lock.
var markers = line.Spoken{
	recipes.ZooKeeper: {line.Candidate},
	recipes.Curator:   {line.CuratorLatch},
	recipes.Kazoo:     {line.KazooLock},
}

func New(lines *line.Lines, path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l, err := lines.At("election", path, cfg.Strategy, cfg.Dialect, markers)
	if err != nil {
		return nil, err
	}
	e := &election{}
	e.Recipe, err = line.NewRecipe(l, "election", Candidates, e.leadership)
	if err != nil {
		return nil, err
	}
	e.Options.Joined = cfg.Joined
	return e, nil
}

type election struct {
	line.Recipe[recipes.Leadership]
}

func (e *election) Campaign(ctx context.Context, proposal []byte) (recipes.Leadership, error) {
	if err := e.Line.Stores(proposal); err != nil {
		return nil, e.Failed(err)
	}
	o := e.Options
	o.Data = proposal
	return e.Enter(ctx, o)
}

func (e *election) leadership(hold *line.Hold) recipes.Leadership {
	l := &leadership{Hold: hold, session: e.Session}
	if e.Line.Dialect == recipes.ZooKeeper {
		l.ack = ackPath(hold.Znode(), hold.Token())
	}
	return l
}

// Resume is line.Line.Resume. The leader's acknowledgement remains.
func (e *election) Resume(ctx context.Context, znode string, token recipes.Token) (recipes.Leadership, error) {
	resumed, err := e.Recipe.Resume(ctx, znode, token)
	if err != nil {
		return nil, err
	}
	l := resumed.(*leadership)
	if l.ack != "" { // the acknowledgement may not exist; deleting it is then harmless
		l.Attach(l.ack)
		l.session.MarkResumed(l.ack)
	}
	return l, nil
}

func (e *election) Candidates(ctx context.Context) ([]recipes.Contender, error) {
	return e.Contenders(ctx)
}

// Candidates reads the candidates of an election. The first one leads.
var Candidates = line.Reader{Spoken: markers, Read: func(ctx context.Context, s *session.Session, p line.Parent, d recipes.Dialect) ([]recipes.Contender, error) {
	return p.InLine(ctx, s, recipes.KindElection, 1, markers[d])
}}

func (e *election) Leader(ctx context.Context) (recipes.Leader, error) {
	get := func(ctx context.Context, path string) (session.Node, *session.Watch, error) {
		node, err := e.Session.Get(ctx, path)
		return node, nil, err
	}
	for {
		v, err := e.read(ctx, get)
		if errors.Is(err, znode.ErrReadAgain) {
			continue
		}
		if err == nil && v.leader.None() {
			err = recipes.ErrNoLeader
		}
		return v.leader, e.Failed(err)
	}
}

// read reads the leader and its acknowledgement with get. If there is no candidate, the
// view has no leader. On an error it is the zero view.
func (e *election) read(ctx context.Context, get func(context.Context, string) (session.Node, *session.Watch, error)) (v view, err error) {
	entries, err := e.Line.Entries(ctx)
	if err != nil || len(entries) == 0 {
		return view{}, err
	}
	path := e.Child(entries[0].Name)
	node, leaderChanged, err := get(ctx, path)
	if err != nil {
		return view{}, znode.Listed(err)
	}
	leader := recipes.Leader{Contender: entries[0].Contender(recipes.KindElection, path, node)}
	leader.Holds, leader.Dialect = true, e.Line.Dialect
	ack, ackChanged, err := get(ctx, ackPath(path, leader.Token))
	switch {
	case err == nil:
		leader.Acknowledged, leader.Acknowledgement = true, ack.Data
	case !errors.Is(err, recipes.ErrNoNode):
		return view{}, err
	}
	return view{leader: leader, leaderChanged: leaderChanged, ackChanged: ackChanged}, nil
}

// ackPath is the path of a candidate's acknowledgement. It has the name of the candidate's
// znode, so observers can compute it, and it is used only once. Acknowledgements have a
// parent of their own, so that an observer can watch its children. A watch on each
// acknowledgement, which may never come, would leave a watch at the server for every leader
// that was observed.
//
// A name that is only a marker and a number may be used twice, so the token is added.
func ackPath(candidate string, token recipes.Token) string {
	name := gopath.Base(candidate)
	if strings.HasPrefix(name, line.Candidate) {
		name = fmt.Sprintf("%s-%x", name, int64(token))
	}
	return gopath.Join(gopath.Dir(candidate), acksName, name)
}

type leadership struct {
	*line.Hold
	session *session.Session
	ack     string // "" where the dialect has no acknowledgements
}

func (l *leadership) Resign(ctx context.Context) error { return l.Release(ctx) }

// Acknowledge creates the acknowledgement as an ephemeral znode, which ends with the
// session. It also attaches the znode to the grant, which deletes it at its end. If the
// znode exists, Acknowledge replaces its data.
func (l *leadership) Acknowledge(ctx context.Context, data []byte) error {
	if l.ack == "" {
		return fmt.Errorf("acknowledge: %w: the dialect has no acknowledgements: the other library would take the znode for a candidate", recipes.ErrInvalid)
	}
	l.Attach(l.ack)
	for {
		var create session.Txn
		create.Create(l.ack, data, true)
		err := l.Commit(ctx, create)
		switch {
		case errors.Is(err, recipes.ErrNodeExists):
			var set session.Txn
			set.Set(l.ack, data, recipes.AnyVersion)
			err = l.Commit(ctx, set)
			if errors.Is(err, recipes.ErrNoNode) {
				continue // another client has deleted the acknowledgement in between
			}
		case errors.Is(err, recipes.ErrNoNode):
			if err = l.session.Ensure(ctx, gopath.Dir(l.ack)); err == nil {
				continue
			}
			if errors.Is(err, recipes.ErrSessionLost) {
				err = l.Err()
			}
		}
		return acknowledging(err)
	}
}

func acknowledging(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("acknowledge: %w", err)
}

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
	v, err := e.view(ctx)
	if err != nil {
		return nil, e.Failed(err)
	}
	events := func() (_, _, _ <-chan struct{}) {
		return v.leaderChanged.Fired(), v.ackChanged.Fired(), v.disconnected
	}
	out, err := znode.Stream(ctx, e.Session, v.leader, events, func(ctx context.Context) (recipes.Leader, error) {
		var err error
		v, err = e.view(ctx)
		return v.leader, err
	}, func(err error) {
		if err != nil {
			e.Session.Log().Error("observing ended", "election", e.Path(), "error", err)
		}
	})
	return out, e.Failed(err)
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
	names, _, changed, err := znode.ListW(ctx, e.Session, gopath.Dir(ack))
	if err == nil && slices.Contains(names, gopath.Base(ack)) {
		err = znode.ErrReadAgain
	}
	return changed, err
}

// awaitCandidates watches the list of candidates, or for the creation of the path.
func (e *election) awaitCandidates(ctx context.Context) (view, error) {
	names, _, changed, err := znode.ListW(ctx, e.Session, e.Path())
	if err == nil && e.Line.HasContender(names) {
		err = znode.ErrReadAgain
	}
	return view{leaderChanged: changed, ackChanged: changed}, err
}
