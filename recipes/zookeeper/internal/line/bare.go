package line

import (
	"context"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// bareGuard is what a hold has to know of its znode where the name alone does
// not say that it is the contender's. The name is given again if the line's path is
// removed and made again.
type bareGuard struct {
	session.BareZnode
	session *session.Session
	marker  string

	writing chan struct{} // holds one element while the guard is being made
	guard   string        // see check; "" if there is none
	seen    bool          // the znode was seen after the guard was made
}

// newBareHold is newHold for a bare znode.
func newBareHold(s *session.Session, bare session.BareZnode, marker string) *Hold {
	h := newHold(s, bare.Path, recipes.Token(bare.Stat.Czxid))
	h.bare = &bareGuard{BareZnode: bare, session: s, marker: marker, writing: make(chan struct{}, 1)}
	return h
}

// watch watches for the znode's deletion, which it reports as ErrNoNode where it
// has happened.
func (p *bareGuard) watch(ctx context.Context) (*session.Watch, error) {
	watch, err := p.session.BareW(ctx, p.BareZnode)
	if err != nil || !fired(watch) {
		return watch, err
	}
	stat, err := p.session.Stat(ctx, p.Path)
	if err == nil && stat.Czxid != p.Stat.Czxid {
		err = fmt.Errorf("%w: %s", recipes.ErrNoNode, p.Path)
	}
	return watch, err
}

// guardsDir is where the guards of a line stand: below its path, but not in it,
// where they would take numbers. Its own name ends with a number larger than any. Some
// libraries take every child of a lock for a contender, and fail on one without a
// number. They find it behind all of them.
//
// It cannot lie elsewhere. A guard proves that the line's path was not removed and
// made again only if it goes with the path, so it has to be below it. And everything
// else that is directly below the path is ephemeral, and can have no children. So
// libraries that only count the children (Curator's InterProcessSemaphoreV2) count
// guardsDir too.
func (p *bareGuard) guardsDir() string {
	return gopath.Join(gopath.Dir(p.Path), "guards-"+p.marker+"9999999999")
}

// check adds what makes a check of the znode's name one of the znode: a check of
// an ephemeral znode below the line's path, the guard. As long as the guard is
// there, the line's path is the same, in which a name is used once; and the znode
// was seen there when the guard was. The first check of a grant makes the guard,
// which costs one write and one read.
func (p *bareGuard) check(ctx context.Context, t *session.Txn, made func(path string)) error {
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.guard == "" {
		guard, err := p.session.CreateProtected(ctx, p.guardsDir(), "guard-", nil)
		if err != nil {
			return err
		}
		made(guard)
		p.guard, p.seen = guard, false
	}
	if !p.seen {
		stat, err := p.session.Stat(ctx, p.Path)
		if err == nil && stat.Czxid != p.Stat.Czxid {
			err = fmt.Errorf("%w: %s", recipes.ErrNoNode, p.Path)
		}
		if err != nil {
			return err
		}
		p.seen = true
	}
	t.Check(p.guard, recipes.AnyVersion)
	return nil
}

// drop forgets the guard, which was found to be gone; if ctx ends first, the next
// write will find that again.
func (p *bareGuard) drop(ctx context.Context) {
	select {
	case p.writing <- struct{}{}:
		p.guard = ""
		<-p.writing
	case <-ctx.Done():
	}
}
