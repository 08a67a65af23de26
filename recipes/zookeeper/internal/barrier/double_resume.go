package barrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Resume resumes a member that has entered in another process of this session: see
// session.Resume. The member's znode must be this session's, created by the transaction
// that is the token. Outside the compatibility modes, ready must name the member. As long
// as that znode exists, no member replaces ready.
//
// Otherwise the error matches recipes.ErrNotHeld, and nothing is changed. If the znode
// is gone or was replaced, the error also matches recipes.ErrRemoved.
func (b *doubleBarrier) Resume(ctx context.Context, path string, token recipes.Token) (recipes.Passage, error) {
	if err := b.isMember(path); err != nil {
		return nil, b.Failed(err)
	}
	if exists, err := b.exists(ctx, path); err != nil {
		return nil, err
	} else if !exists {
		return nil, b.Failed(fmt.Errorf("resume: %w: %s", recipes.ErrRemoved, path))
	}
	r, err := b.entered(ctx)
	if err != nil {
		return nil, b.Failed(err)
	}
	if !slices.Contains(r.members, gopath.Base(path)) {
		return nil, b.Failed(fmt.Errorf("resume: %w: %s has not entered", recipes.ErrNotHeld, path))
	}
	o, err := znode.Resume(ctx, b.Session, b.Path(), path, token)
	if err != nil {
		return nil, b.Failed(err)
	}
	b.markReadyResumed()
	return b.passage(o, r), nil
}

// markReadyResumed keeps session.DropRest from deleting ready, which in a compatibility
// mode may be the session's. It keeps others out while members are inside.
func (b *doubleBarrier) markReadyResumed() {
	if b.compatible() {
		b.Session.MarkResumed(b.readyPath())
	}
}

// entered returns the members that have entered. In a compatibility mode these are all
// members that are present, because the next round begins only after this member is gone.
// Ready may be gone already in that mode. The token proves that this member has entered.
func (b *doubleBarrier) entered(ctx context.Context) (round, error) {
	if b.compatible() {
		return b.round(ctx)
	}
	r, err := b.read(ctx)
	return round{r.generation, math.MaxInt64}, err
}

// ResumeLeaving is Resume for a member that was leaving. members are the members that
// entered together. Most members delete their znode first and then wait for the others, so
// the znode may be gone. Then the passage has ended, and Leave only waits for the others.
func (b *doubleBarrier) ResumeLeaving(ctx context.Context, path string, token recipes.Token, members []string) (recipes.Passage, error) {
	r := round{members: make([]string, len(members)), zxid: math.MaxInt64}
	for i, m := range members {
		if err := b.isMember(m); err != nil {
			return nil, b.Failed(err)
		}
		r.members[i] = gopath.Base(m)
	}
	if !slices.Contains(members, path) || token == 0 {
		return nil, b.Failed(fmt.Errorf("resume: %w: %q is not among the members, or has no token", recipes.ErrInvalid, path))
	}
	exists, err := b.exists(ctx, path)
	if err != nil {
		return nil, err
	}
	if exists {
		return b.Resume(ctx, path, token)
	}
	if b.compatible() {
		stat, err := b.Session.Stat(ctx, b.Path())
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return nil, b.Failed(err)
		}
		r.zxid = stat.Pzxid
		b.markReadyResumed()
	}
	return b.passage(znode.Released(b.Session, path, token), r), nil
}

// exists reports whether a member's znode exists, in this session or in another one.
func (b *doubleBarrier) exists(ctx context.Context, path string) (bool, error) {
	_, err := b.Session.Stat(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, b.Failed(err)
	}
	return true, nil
}

// ResumeWaiting is Enter for a member that another process of this session has created. As
// far as the caller knows, the member had not entered when that process ended. The others
// have counted it since its first Enter. On an error its znode is deleted, as in Enter.
// joined is called after the member is resumed, before it waits. If its znode is gone, the
// error matches recipes.ErrRemoved.
func (b *doubleBarrier) ResumeWaiting(ctx context.Context, path string, joined func(recipes.Place)) (recipes.Passage, error) {
	err := b.isMember(path)
	if err != nil {
		return nil, b.Failed(err)
	}
	o, err := znode.ResumeWaiter(ctx, b.Session, b.Path(), path)
	if err != nil {
		return nil, b.Failed(err)
	}
	b.markReadyResumed()
	joined(recipes.Place{Znode: path, Position: recipes.UnknownPosition})
	return b.await(ctx, o)
}

// isMember checks that a path can be a member's.
func (b *doubleBarrier) isMember(path string) error {
	name := gopath.Base(path)
	if b.Child(name) != path || memberOf(name) != b.line.Dialect {
		return fmt.Errorf("resume: %w: %q is not a member of %s", recipes.ErrInvalid, path, b.Path())
	}
	return nil
}
