package barrier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// passage is a member that has entered a double barrier.
type passage struct {
	*znode.Ephemeral
	session *session.Session
	barrier *doubleBarrier
	members []string
	round   round // members that are known to be gone are removed from it

	removal session.Removal
}

func (p *passage) Members() []string {
	paths := make([]string, len(p.members))
	for i, name := range p.members {
		paths[i] = p.barrier.Child(name)
	}
	return paths
}

func (p *passage) Leave(ctx context.Context) error {
	p.End(recipes.ErrReleased)
	err := p.leave(ctx)
	switch {
	case err != nil && p.session.Err() != nil:
		err = fmt.Errorf("%w: %w", recipes.ErrNotHeld, p.session.Err())
	case err != nil:
		p.removal.Start(p.delete) // the others must not wait for a member that has given up
	case errors.Is(p.Err(), recipes.ErrRemoved):
		err = p.Err()
	}
	if err != nil {
		return p.barrier.Failed(fmt.Errorf("leave: %w", err))
	}
	return nil
}

// leave is the text's Leave among the members of one generation. It ignores a ready znode
// that is written in between.
func (p *passage) leave(ctx context.Context) error {
	return znode.Await(ctx, p.session, "waiting for the others", func() ([]<-chan struct{}, error) {
		target, err := p.step(ctx)
		if err != nil || target == "" {
			return nil, err
		}
		node, gone, err := p.session.GetW(ctx, p.barrier.Child(target))
		if err != nil {
			return nil, znode.Listed(err)
		}
		if node.Stat.Czxid > p.round.zxid { // the member has entered again
			p.round.members = slices.DeleteFunc(slices.Clone(p.round.members), func(name string) bool { return name == target })
			return nil, znode.ErrReadAgain
		}
		return znode.Events(gone), nil
	})
}

// step lists the remaining members and does the text's next step for a leaving member. It
// returns the member to wait for, or "" if no member remains.
func (p *passage) step(ctx context.Context) (target string, err error) {
	remaining, err := p.remaining(ctx)
	if err != nil {
		return "", err
	}
	switch i := slices.Index(remaining, p.Name()); {
	case len(remaining) == 0:
		return "", p.clear(ctx)
	case i == 0 && len(remaining) == 1:
		return "", p.deleteReady(ctx)
	case i == 0:
		return remaining[len(remaining)-1], nil
	case i > 0 && p.barrier.line.Dialect == recipes.Kazoo:
		return remaining[0], p.deleteReady(ctx) // kazoo's lowest member also waits until ready is gone
	case i > 0:
		return remaining[0], p.await(ctx)
	}
	return remaining[0], nil
}

func (p *passage) remaining(ctx context.Context) ([]string, error) {
	if p.barrier.compatible() {
		names, stat, err := p.session.List(ctx, p.barrier.Path())
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, nil
		}
		if slices.Contains(names, p.Name()) {
			p.round.zxid = stat.Pzxid // no member enters again while this one is present
		}
		return slices.DeleteFunc(p.barrier.own(names), func(name string) bool { return !slices.Contains(p.round.members, name) }), err
	}
	entries, err := p.barrier.line.Entries(ctx)
	return among(entries, p.round.members), err
}

// clear deletes a ready znode that the members of the round have left behind. Curator's
// members do the same when all are gone.
func (p *passage) clear(ctx context.Context) error {
	if p.barrier.line.Dialect != recipes.Curator {
		return nil
	}
	stat, err := p.session.Stat(ctx, p.barrier.readyPath())
	if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid > p.round.zxid {
		return nil
	}
	if err != nil {
		return err
	}
	return p.barrier.deleteReady(ctx)
}

// await deletes the member's znode and waits until it is known to be gone. The deletion
// continues after ctx has ended.
func (p *passage) await(ctx context.Context) error {
	return p.removal.Run(ctx, "leaving", p.delete)
}

// delete deletes the member's znode. It succeeds if the znode is gone already.
func (p *passage) delete(settle func(error)) {
	deletion := p.session.Delete(p.Znode())
	go func() {
		err := <-deletion
		if session.IsGone(err) {
			err = nil
		}
		settle(err)
	}()
}

// deleteReady deletes ready together with the member's znode. The caller is the last member of
// its generation, so an unused barrier leaves nothing behind. In kazoo's dialect it can be any
// member. As long as the member's znode exists, no member replaces ready, so this ready is the
// generation's own.
//
// If the last member dies or gives up instead, ready remains. No member that it names is
// present then, and the next generation replaces it.
func (p *passage) deleteReady(ctx context.Context) error {
	var t session.Txn
	t.Delete(p.Znode(), recipes.AnyVersion)
	const ofReady = 1 // the operation on ready
	t.Delete(p.barrier.readyPath(), recipes.AnyVersion)
	err := p.session.Commit(ctx, t)
	switch refused := znode.RefusedOp(err); {
	case refused == ofReady:
		return p.await(ctx) // another client has deleted ready
	case refused >= 0 && errors.Is(err, recipes.ErrNoNode):
		return znode.ErrReadAgain // another client has deleted the member's znode; step may clear ready
	}
	return znode.Again(ctx, p.session, "delete "+p.Znode(), err) // if it is given up, Leave deletes the znode
}
