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
// session.Resume. Outside a dialect nothing is taken on trust. The data of ready name the
// member, as for one that enters, and the znode is this session's, created by the transaction that is
// the token. As long as that znode exists, no member replaces ready.
//
// Otherwise the error matches recipes.ErrNotHeld, and nothing is changed. If the znode
// is gone or is another one, it matches recipes.ErrRemoved too.
func (b *doubleBarrier) Resume(ctx context.Context, path string, token recipes.Token) (recipes.Passage, error) {
	if err := b.isMember(path); err != nil {
		return nil, b.failed(err)
	}
	if exists, err := b.exists(ctx, path); err != nil {
		return nil, err
	} else if !exists {
		return nil, b.failed(fmt.Errorf("resume: %w: %s", recipes.ErrRemoved, path))
	}
	r, err := b.entered(ctx)
	if err != nil {
		return nil, b.failed(err)
	}
	if !slices.Contains(r.members, gopath.Base(path)) {
		return nil, b.failed(fmt.Errorf("resume: %w: %s has not entered", recipes.ErrNotHeld, path))
	}
	o, err := znode.Resume(ctx, b.line.Session, b.line.Path, path, token)
	if err != nil {
		return nil, b.failed(err)
	}
	b.markReadyResumed()
	return b.passage(o, r), nil
}

// markReadyResumed has session.DropRest leave ready, which in a dialect may be the session's. While
// members are inside it keeps others out.
func (b *doubleBarrier) markReadyResumed() {
	if b.speaks() {
		b.line.Session.MarkResumed(b.readyPath())
	}
}

// entered returns who has entered. In a dialect that is whoever is there: the next round
// begins when the member is gone. There ready may be gone already. The caller has the
// token, which it was given when the member entered.
func (b *doubleBarrier) entered(ctx context.Context) (round, error) {
	if b.speaks() {
		return b.round(ctx)
	}
	r, err := b.read(ctx)
	return round{r.generation, math.MaxInt64}, err
}

// ResumeLeaving is Resume for a member that was leaving, and members are those that had
// entered together. Most members delete their znode first, and then wait for the others.
// So the znode may be gone. Then the passage has ended, and Leave waits for the others.
func (b *doubleBarrier) ResumeLeaving(ctx context.Context, path string, token recipes.Token, members []string) (recipes.Passage, error) {
	r := round{members: make([]string, len(members)), zxid: math.MaxInt64}
	for i, m := range members {
		if err := b.isMember(m); err != nil {
			return nil, b.failed(err)
		}
		r.members[i] = gopath.Base(m)
	}
	if !slices.Contains(members, path) || token == 0 {
		return nil, b.failed(fmt.Errorf("resume: %w: %q is not among the members, or has no token", recipes.ErrInvalid, path))
	}
	exists, err := b.exists(ctx, path)
	if err != nil {
		return nil, err
	}
	if exists {
		return b.Resume(ctx, path, token)
	}
	if b.speaks() {
		stat, err := b.line.Session.Stat(ctx, b.line.Path)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return nil, b.failed(err)
		}
		r.zxid = stat.Pzxid
		b.markReadyResumed()
	}
	return b.passage(znode.Released(b.line.Session, path, token), r), nil
}

// exists reports whether a member's znode is there, whoever it belongs to.
func (b *doubleBarrier) exists(ctx context.Context, path string) (bool, error) {
	_, err := b.line.Session.Stat(ctx, path)
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, b.failed(err)
	}
	return true, nil
}

// ResumeWaiting is Enter for a member that another process of this session has made, and that
// had not entered when that process ended, as far as the caller knows. It is counted
// from its first Enter on, and leaves on the terms of Enter. joined is called when the
// member is resumed, before it waits. If its znode is gone, the error matches
// recipes.ErrRemoved.
func (b *doubleBarrier) ResumeWaiting(ctx context.Context, path string, joined func(recipes.Place)) (recipes.Passage, error) {
	err := b.isMember(path)
	if err != nil {
		return nil, b.failed(err)
	}
	o, err := znode.ResumeWaiter(ctx, b.line.Session, b.line.Path, path)
	if err != nil {
		return nil, b.failed(err)
	}
	b.markReadyResumed()
	joined(recipes.Place{Znode: path, Position: recipes.UnknownPosition})
	return b.await(ctx, o)
}

// isMember checks that a znode can be a member's.
func (b *doubleBarrier) isMember(path string) error {
	name := gopath.Base(path)
	if gopath.Join(b.line.Path, name) != path || memberOf(name) != b.line.Dialect {
		return fmt.Errorf("resume: %w: %q is not a member of %s", recipes.ErrInvalid, path, b.line.Path)
	}
	return nil
}
