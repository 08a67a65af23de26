package twophase

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

type ballot struct {
	site    string
	vote    recipes.Vote
	version int32
	dead    bool
	changed *session.Watch // nil before the first read, and once no change matters any more
}

// collect watches the votes until they allow a decision, and makes the decision.
func (t *twoPhase) collect(ctx context.Context, p protocol) (recipes.Decision, error) {
	for {
		d, err := t.count(ctx, p)
		if !errors.Is(err, znode.ErrReadAgain) {
			return d, err
		}
	}
}

// count reads the votes, on one connection, until they allow a decision. After
// znode.ErrReadAgain the caller has to read all votes again.
func (t *twoPhase) count(ctx context.Context, p protocol) (recipes.Decision, error) {
	disconnected, err := t.Session.Connected(ctx)
	if err != nil {
		return recipes.Decision{}, err
	}
	made, decision, err := t.Session.ExistsW(ctx, t.Child(decisionName))
	if err != nil {
		return recipes.Decision{}, err
	}
	if made {
		return t.decided(ctx, p)
	}
	present, joins, err := t.joined(ctx, p)
	if err != nil {
		return recipes.Decision{}, err
	}
	ballots := make([]ballot, len(present))
	for i, s := range present {
		ballots[i] = ballot{site: s}
	}
	for {
		if d, err := t.readVotes(ctx, p, ballots); err != nil || d != nil {
			return d.decide(ctx, t, p, err)
		}
		watches, voted := []*session.Watch{decision}, joins == nil
		for _, b := range ballots {
			voted = voted && b.vote != ""
			if b.changed != nil {
				watches = append(watches, b.changed)
			}
		}
		if voted {
			return (&verdict{commit: true, on: ballots}).decide(ctx, t, p, nil)
		}
		if joins != nil {
			watches = append(watches, joins)
		}
		if err := t.awaitEvent(ctx, disconnected, watches...); err != nil {
			return recipes.Decision{}, err
		}
		if fired(decision) && decision.Created() {
			return t.decided(ctx, p)
		}
		if fired(decision) || joins != nil && fired(joins) || session.Happened(disconnected) {
			return recipes.Decision{}, znode.ErrReadAgain
		}
	}
}

// joined returns the sites whose votes can be read, and a watch for the other sites, or nil
// if all sites have joined. Only with OwnNodes can a site be missing.
func (t *twoPhase) joined(ctx context.Context, p protocol) ([]string, *session.Watch, error) {
	if p.Variant != recipes.OwnNodes {
		return p.Sites, nil, nil
	}
	names, err := t.Session.Children(ctx, t.Path()) // usually all have joined
	if _, missing := p.split(names, joinedPrefix); err != nil || len(missing) == 0 {
		return p.Sites, nil, err
	}
	names, changed, err := t.Session.ChildrenW(ctx, t.Path())
	present, missing := p.split(names, joinedPrefix)
	if err != nil || len(missing) == 0 {
		return p.Sites, nil, err // the last site joined in between
	}
	return present, changed, nil
}

// readVotes reads the votes that have changed. It returns a verdict as soon as one vote
// is an abort, or a site is dead.
func (t *twoPhase) readVotes(ctx context.Context, p protocol, ballots []ballot) (*verdict, error) {
	for i := range ballots {
		b := &ballots[i]
		if b.changed == nil && b.vote != "" || b.changed != nil && !fired(b.changed) {
			continue
		}
		if err := t.readVote(ctx, p, b); err != nil {
			return nil, err
		}
		if b.dead {
			return &verdict{reason: "site " + b.site + " has died", on: []ballot{*b}}, nil
		}
		if b.vote == recipes.VoteAbort {
			return &verdict{reason: "site " + b.site + " voted so", on: []ballot{*b}}, nil
		}
	}
	return nil, nil
}

// readVote reads a site's vote, with a watch until the site has voted: a vote never
// changes. With OwnNodes the watch remains, because the death of a site after its vote
// aborts the transaction, without waiting for the other votes.
func (t *twoPhase) readVote(ctx context.Context, p protocol, b *ballot) error {
	path, ephemeral := t.Child(sitePrefix+b.site), p.Variant == recipes.OwnNodes
	if b.changed != nil && !ephemeral { // the site has probably voted
		node, err := t.Session.Get(ctx, path)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return err
		}
		if err == nil && len(node.Data) > 0 {
			b.changed = nil
			return b.cast(node)
		}
	}
	node, changed, err := t.Session.GetW(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) && ephemeral {
		b.dead = true // the site has joined, so its znode existed
		return nil
	}
	if err != nil {
		return err
	}
	b.changed = changed
	if !ephemeral && len(node.Data) > 0 {
		b.changed = nil
	}
	return b.cast(node)
}

func (b *ballot) cast(node session.Node) error {
	b.vote, b.version = recipes.Vote(node.Data), node.Stat.Version
	if b.vote == "" {
		return nil
	}
	if err := b.vote.Validate(); err != nil {
		return fmt.Errorf("site %s: %w", b.site, err)
	}
	return nil
}

type verdict struct {
	commit bool
	reason string
	on     []ballot // the votes that it rests on; the transaction that decides checks them
}

// decide makes the decision, unless reading the votes has failed with err.
//
// For a dead site the guard would be enough. The record that the site has joined is deleted
// only with the transaction. Until then no session can join as that site. The check of the
// record is for the case that an operator has deleted it.
func (v *verdict) decide(ctx context.Context, t *twoPhase, p protocol, err error) (recipes.Decision, error) {
	if err != nil {
		return recipes.Decision{}, err
	}
	guarded := t.guard(p)
	for _, b := range v.on {
		if b.dead {
			guarded.Check(t.Child(joinedPrefix+b.site), recipes.AnyVersion)
		} else {
			guarded.Check(t.Child(sitePrefix+b.site), b.version)
		}
	}
	return t.decide(ctx, p, recipes.Decision{Commit: v.commit, Reason: v.reason}, guarded, len(v.on))
}

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
		if err := t.awaitEvent(ctx, disconnected, changed, gone); err != nil {
			return recipes.Decision{}, err
		}
		if fired(changed) && changed.Created() { // the watch also fires when another call has stopped waiting
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
			t.Session.DeleteOwned(path, stat, nil)
		}
	})
}

func (t *twoPhase) awaitEvent(ctx context.Context, disconnected <-chan struct{}, watches ...*session.Watch) error {
	return t.Session.Wait(ctx, "waiting for the decision", append(znode.Events(watches...), disconnected)...)
}

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }
