package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// atOnce bounds how many grants of a session are resumed at a time.
const atOnce = 32

// resumePossessions makes the plugin of a generation resume the session's possessions, and
// then serve the session. A possession that is not resumed is lost; its owner is notified
// before DropRest deletes the znode. resumePossessions gives up when the generation ends: the
// next one resumes the same possessions.
func (s *session) resumePossessions(t *generation) {
	defer close(t.resumeEnded)
	ctx, cancel := context.WithCancel(s.over)
	defer cancel()
	defer context.AfterFunc(t.over, cancel)()
	if !s.resumeAll(ctx, t) {
		return
	}
	refused, _ := s.retry(t.plugin.to(ctx), func(ctx context.Context) error {
		_, err := s.sessions.DropRest(ctx, &pb.DropRestRequest{Session: s.handle})
		return err
	})
	if refused != nil && t.over.Err() == nil {
		s.lose(fmt.Errorf("%w: the session was resumed, and the znodes that were not resumed cannot be deleted: %w", recipes.ErrPluginLost, refused))
	}
	if refused != nil {
		return
	}
	for _, g := range s.begin(t) { // none if the generation has ended
		s.spawn(g.arm)
	}
}

// begin makes t serve the session, unless t has ended. It returns the grants whose loss the
// plugin must report.
//
// When t's stream ends, t.over ends first, and survives clears s.serving afterwards under mu.
// So either begin sees that t.over has ended, or survives sees that t serves the session.
func (s *session) begin(t *generation) (watched []*remoteGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || t.over.Err() != nil {
		return nil
	}
	t.ready = true
	s.serveReady(t)
	for _, p := range s.owned {
		if g, ok := p.(*remoteGrant); ok && g.watched {
			watched = append(watched, g)
		}
	}
	return watched
}

// A possession is a grant or a part, which the next plugin resumes.
type possession interface {
	resume(ctx context.Context) error // in the plugin that ctx names
	drop(reason error)                // ends it: it was not resumed
	where() *location
}

// location records in which generation a possession was granted or last resumed.
type location struct{ at *generation } // under the session's mu

func (h *location) where() *location { return h }

// resumeAll resumes possessions and contenders until there are no more, and reports whether
// it has finished. From then on only grants of this plugin count.
func (s *session) resumeAll(ctx context.Context, t *generation) bool {
	for {
		rest, turns, all := s.notResumed(t)
		if all || ctx.Err() != nil {
			return all
		}
		var work sync.WaitGroup
		free := make(chan struct{}, atOnce)
		for _, p := range rest {
			free <- struct{}{}
			work.Go(func() { defer func() { <-free }(); s.resumeOne(ctx, t, p) })
		}
		for _, offered := range turns {
			select {
			case <-offered.done:
			case <-ctx.Done():
			}
		}
		work.Wait()
	}
}

// notResumed returns the possessions that the generation's plugin has not resumed. It offers
// turns to the contenders that were not resumed, and returns these turns. If there is neither,
// all is true, and the generation is the owner from now on.
func (s *session) notResumed(t *generation) (rest []possession, turns []turn, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resuming = t
	for _, p := range s.owned {
		if p.where().at != t {
			rest = append(rest, p)
		}
	}
	for _, w := range s.waiters {
		if (w.znode != "" || w.always) && w.at != t {
			offered := turn{t, make(chan struct{})}
			w.offer(offered)
			turns = append(turns, offered)
		}
	}
	if all = len(rest)+len(turns) == 0; all {
		s.owner, s.resuming = t, nil
	}
	return rest, turns, all
}

// resumeOne makes the plugin resume one possession. If the plugin refuses, resumeOne drops it.
func (s *session) resumeOne(ctx context.Context, t *generation, p possession) {
	err, ok := s.retry(t.plugin.to(ctx), p.resume)
	switch {
	case !ok: // the plugin may have ended; the stream reports that
	case err != nil:
		p.drop(err)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		p.where().at = t
	}
}

// retry repeats a call until the plugin answers it or ctx ends. ok reports an answer; refused
// is its error.
func (s *session) retry(ctx context.Context, rpc func(context.Context) error) (refused error, ok bool) {
	for {
		err := rpc(ctx)
		if e, answered := wire.Error(err); err == nil || answered && definite(e) {
			return e, true
		}
		if !s.linger(ctx, retryPause) {
			return nil, false
		}
	}
}

// resume makes another plugin resume the grant.
func (g *remoteGrant) resume(ctx context.Context) error {
	g.s.mu.Lock()
	ask := g.request
	g.s.mu.Unlock()
	a, err := g.s.grants.Acquire(ctx, resuming(ask, &pb.Grant{Token: int64(g.token), Znode: g.znode}))
	if err == nil && recipes.Token(a.GetGrant().GetToken()) != g.token {
		err = wire.ToStatus(fmt.Errorf("%w: it was resumed with token %d", errNotResumed, a.GetGrant().GetToken()), nil)
	}
	return err
}

// errNotResumed ends a grant whose session continues in another plugin.
var errNotResumed = fmt.Errorf("%w: the plugin has ended, and the next one has not resumed it", recipes.ErrNotHeld)

// drop ends a grant that was not resumed.
func (g *remoteGrant) drop(reason error) {
	if !errors.Is(reason, recipes.ErrNotHeld) {
		reason = fmt.Errorf("%w: %w", errNotResumed, reason)
	}
	g.s.forget(g.id)
	g.lose(reason)
}
