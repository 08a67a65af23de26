package line

import (
	"context"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// bareGuard identifies the bare znode of a hold. Its name is not enough, because it is used again
// if the path of the wait queue is deleted and created again.
type bareGuard struct {
	session.BareZnode
	session *session.Session
	marker  string

	writing chan struct{} // a mutex that can be awaited with a context: full while it is locked
	guard   string        // the path of the guard, see check; "" if there is none
	seen    bool          // the znode was read after the guard was created
}

// newBareHold is Resumed for a bare znode.
func newBareHold(s *session.Session, bare session.BareZnode, marker string) *Hold {
	h := Resumed(s, bare.Path, recipes.Token(bare.Stat.Czxid), nil)
	h.bare = &bareGuard{BareZnode: bare, session: s, marker: marker, writing: make(chan struct{}, 1)}
	return h
}

// watch watches for the znode's deletion. It returns ErrNoNode if the znode is already deleted.
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

// guardsDir is the directory of a wait queue's guards. It is a child of the path, so that
// guards do not use numbers of the path. Its own name ends with a number larger than any. Some
// libraries take every child of a lock for a contender and fail on one without a number. They
// sort guardsDir behind all contenders.
//
// It must be below the path. A guard proves that the path was not deleted and created again
// only if it is deleted with the path. All other children of the path are ephemeral and have no
// children. Libraries that only count the children (Curator's InterProcessSemaphoreV2) also
// count guardsDir.
func (p *bareGuard) guardsDir() string {
	return gopath.Join(gopath.Dir(p.Path), "guards-"+p.marker+"9999999999")
}

// check adds a check of the guard, an ephemeral znode below the path, to a transaction that checks
// the znode's name. As long as the guard exists, the path was not created again, so no name in it
// was used twice. The znode was read after the guard was created. So the name belongs to the
// znode. The first check of a grant creates the guard, which costs one write and one read.
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

// drop forgets a guard that was found deleted. If ctx is done first, the guard stays, and the next
// write finds again that it is deleted.
func (p *bareGuard) drop(ctx context.Context) {
	select {
	case p.writing <- struct{}{}:
		p.guard = ""
		<-p.writing
	case <-ctx.Done():
	}
}
