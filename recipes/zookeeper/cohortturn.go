package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// cohortMark is the data of a path where contenders use cohorts.
const cohortMark = "zkrecipes cohort"

// turn is what a cohort makes of one grant: holds, one after the other. Who has
// taken it owns version and known; the rest is guarded by cohorts.mu.
type turn struct {
	cohort *cohort
	grant  *line.Grant
	given  int  // of how many it was, or is about to be, the hold
	taken  bool // somebody has it: as hold, or about to
	hold   *cohortHold

	version int32 // of the path's data
	known   bool

	watching bool
	giving   bool // the grant is being released
	gone     chan struct{}
	result   error // of the release, when gone is closed
}

// watch has the cohort learn when the grant is lost. It costs one read for each
// turn, not for each hold. cohorts.mu is held.
func (t *turn) watch() {
	if !t.watching {
		t.watching = t.cohort.session.Background(func(context.Context) {
			<-t.grant.Done() // closed with the session at the latest
			t.cohort.drop(t)
		})
	}
}

// stamp makes a hold of a turn: it writes to the path, by which the hold gets
// its token, and by which the server refuses the guarded writes of the hold
// before, even one that was sent before that was released and comes late. What
// it does not know, because a reply was lost, it does again: a stamp that is not
// used does no harm.
//
// The version keeps it from writing over what is not the mark.
func (t *turn) stamp(ctx context.Context) (recipes.Token, error) {
	s, path := t.cohort.session, t.cohort.path
	for {
		if !t.known {
			node, err := t.grant.Stamped(ctx)
			if err != nil {
				return 0, err
			}
			if said := string(node.Data); said != "" && said != cohortMark {
				return 0, fmt.Errorf("%w: the path holds %q; where there are cohorts it holds %q", recipes.ErrMismatch, shorten(said), cohortMark)
			}
			t.version, t.known = node.Stat.Version, true
		}
		stat, err := t.grant.Stamp(ctx, []byte(cohortMark), t.version)
		if err == nil {
			t.version = stat.Version
			return recipes.Token(stat.Mzxid), nil
		}
		t.known = false
		if !retry(ctx, s, err) {
			return 0, settled(ctx, s, "stamp "+path, err)
		}
		// The server that is asked next may be behind.
		if err := s.Sync(ctx, path); err != nil && !errors.Is(err, recipes.ErrNoNode) {
			return 0, err
		}
	}
}

// held is the hold of who has the turn, or nil if it was lost meanwhile.
func (t *turn) held(token recipes.Token) *cohortHold {
	t.cohort.all.mu.Lock()
	defer t.cohort.all.mu.Unlock()
	if t.cohort.turn != t {
		return nil
	}
	t.hold = &cohortHold{turn: t, token: token, version: t.version, lost: make(chan struct{})}
	return t.hold
}

// end ends the turn's hold: the turn can be taken by the next. cohorts.mu is held.
func (t *turn) end(reason error) {
	t.hold.reason = reason
	close(t.hold.lost)
	t.hold = nil
	t.cohort.members--
	t.taken = false
}

// drop ends the turn, and its hold, because the grant is lost.
func (c *cohort) drop(t *turn) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.turn != t || t.giving {
		return
	}
	if t.hold != nil {
		t.end(t.grant.Err())
	}
	c.turn = nil
	c.proceed()
}

// giveBack releases the grant: somebody else stands in line, as far as is known
// here, or nobody wants it. cohorts.mu is held.
func (c *cohort) giveBack() {
	t := c.turn
	t.giving = true
	started := c.session.Background(func(context.Context) {
		t.result = t.grant.Release(context.Background()) // ends with the session at the latest
		c.all.mu.Lock()
		c.turn = nil
		c.proceed()
		c.all.mu.Unlock()
		close(t.gone)
	})
	if !started {
		t.result = t.grant.Release(context.Background()) // does not wait: the session is over
		c.turn = nil
		close(t.gone)
		c.proceed()
	}
}
