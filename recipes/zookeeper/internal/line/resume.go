package line

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Resume resumes a hold that another process was granted in this session: see session.Resume.
// znode and token are the hold's. It decides as for a new contender. A listing shows no
// contender ahead that blocks it. A read of the znode after that shows that it belongs to this
// session and was created by the transaction that is the token. So Resume grants nothing that
// Enter would not grant.
//
// A znode can be resumed once, and only before session.DropRest. Otherwise the error matches
// recipes.ErrInvalid. If the hold has ended the error matches recipes.ErrNotHeld. If the znode
// is deleted, or another one has its name, it also matches recipes.ErrRemoved. The wait queue
// does not change.
func (l *Line) Resume(ctx context.Context, znode string, token recipes.Token) (*Hold, error) {
	me, err := l.contender(znode)
	if err != nil {
		return nil, err
	}
	if err := l.stillFirst(ctx, me.Name); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	node, slot, err := l.resumeHeld(ctx, znode, token)
	if err != nil {
		return nil, err
	}
	if bare, ok := l.resumeBare(znode, me, node); ok {
		return l.Inspected(newBareHold(l.Session, bare, me.Kind)), nil
	}
	return l.resumed(znode, token, slot), nil
}

func (l *Line) resumed(znode string, token recipes.Token, slot *int) *Hold {
	h := Resumed(l.Session, znode, token, l.Asked)
	h.slot = slot
	return l.Inspected(h)
}

// contender returns the contender whose znode is at that path, if it can belong to this wait
// queue.
func (l *Line) contender(znode string) (Entry, error) {
	name := gopath.Base(znode)
	parsed := Parse([]string{name}, l.Markers...)
	if gopath.Join(l.Path, name) != znode || len(parsed) == 0 {
		return Entry{}, fmt.Errorf("resume: %w: %q is not a contender of %s", recipes.ErrInvalid, znode, l.Path)
	}
	return parsed[0], nil
}

// resumeBare returns the contender's bare znode, if it has one.
func (l *Line) resumeBare(znode string, me Entry, node session.Node) (session.BareZnode, bool) {
	if _, ok := session.BareData(node.Data); !ok || !me.Bare() {
		return session.BareZnode{}, false
	}
	bare := session.BareZnode{Path: znode, Stat: node.Stat}
	l.Session.ResumeBare(bare)
	return bare, true
}

// ResumeWaiting is Enter for a contender of this session that another process has entered, and
// that, to the caller's knowledge, was not granted when that process ended. The contender keeps
// its place. If its znode is deleted, the error matches recipes.ErrRemoved.
func (l *Line) ResumeWaiting(ctx context.Context, znode string, o Options) (*Hold, error) {
	me, err := l.contender(znode)
	if err != nil {
		return nil, err
	}
	node, err := ResumeWaiter(ctx, l.Session, znode)
	if err != nil {
		return nil, err
	}
	bare, ok := l.resumeBare(znode, me, node)
	if !ok {
		return l.waitOrLeave(ctx, znode, o)
	}
	return l.waitByHandoff(ctx, &handoffWaiter{line: l, bare: bare, me: me, resumed: true}, o, -1)
}

// stillFirst checks that no contender ahead blocks the contender of that name. It ignores
// third-party contenders: they joined after the grant.
func (l *Line) stillFirst(ctx context.Context, name string) error {
	for {
		entries, err := l.Entries(ctx)
		if err != nil {
			return err
		}
		position := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
		if position < 0 {
			return fmt.Errorf("%w: %s", recipes.ErrRemoved, gopath.Join(l.Path, name))
		}
		me := entries[position]
		blockers := l.Rule(entries[:position], me)
		if len(blockers) < max(l.Permits, 1) {
			return nil
		}
		predecessor := blockers[len(blockers)-1]
		if l.Passes != nil {
			passes, err := l.tryPass(ctx, predecessor, l.Passes(me))
			switch {
			case errors.Is(err, recipes.ErrNoNode):
				continue // the contender left between the listing and the read
			case err != nil:
				return err
			case passes:
				return nil
			}
		}
		return fmt.Errorf("%w: %s waits behind %s", recipes.ErrNotHeld, me.Name, predecessor.Name)
	}
}

// ResumeHeld resumes a znode that this session has created by the transaction that is token,
// and begins a hold: see Resumed. If the znode does not exist, the error matches
// recipes.ErrRemoved.
func ResumeHeld(ctx context.Context, s *session.Session, znode string, token recipes.Token) error {
	_, _, err := (&Line{Session: s}).resumeHeld(ctx, znode, token)
	return err
}

// resumeHeld is ResumeHeld, and returns the znode and its number.
func (l *Line) resumeHeld(ctx context.Context, znode string, token recipes.Token) (node session.Node, slot *int, err error) {
	if token == 0 {
		return node, nil, fmt.Errorf("resume: %w: %s without its token", recipes.ErrInvalid, znode)
	}
	if node, err = own(ctx, l.Session, znode); err != nil {
		return node, nil, err
	}
	created := token
	if l.Claim != nil { // the token is that of the claim
		is, number, ok := l.tokenOf(node)
		if !ok || is != token {
			return node, nil, fmt.Errorf("resume: %w: %s was written again: its token is %d, not %d", recipes.ErrRemoved, znode, is, token)
		}
		created, slot = 0, number
	}
	if err := l.Session.BeginHold(ctx); err != nil {
		return node, nil, fmt.Errorf("resume: %w", err)
	}
	if err := l.Session.ResumeZnode(znode, node.Stat, created); err != nil {
		l.Session.EndHold()
		return node, nil, err
	}
	return node, slot, nil
}

// ResumeHold is ResumeHeld, and returns the hold.
func (l *Line) ResumeHold(ctx context.Context, znode string, token recipes.Token) (*Hold, error) {
	_, slot, err := l.resumeHeld(ctx, znode, token)
	if err != nil {
		return nil, err
	}
	return l.resumed(znode, token, slot), nil
}

// ResumeWaiter resumes the znode of a contender that has no token and holds nothing.
func ResumeWaiter(ctx context.Context, s *session.Session, znode string) (session.Node, error) {
	node, err := own(ctx, s, znode)
	if err == nil {
		err = s.ResumeZnode(znode, node.Stat, 0)
	}
	return node, err
}

// own reads a znode of this session. session.Resume has synced, so every request of the earlier
// process is visible.
func own(ctx context.Context, s *session.Session, znode string) (session.Node, error) {
	node, err := s.GetOwn(ctx, znode)
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return node, fmt.Errorf("resume: %w: %s", recipes.ErrRemoved, znode)
	case err != nil:
		return node, fmt.Errorf("resume: %w", err)
	}
	return node, nil
}
