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

// resumePossessions has the plugin of a generation resume what the session has, and then serve it.
// What is not resumed is lost, and its owner is told so before DropRest deletes it. It
// gives up when the generation ends: the next one resumes the same.
func (s *session) resumePossessions(t *generation) {
	defer close(t.took)
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
		s.lose(fmt.Errorf("%w: the session was resumed, and what is left of it cannot be deleted: %w", recipes.ErrPluginLost, refused))
	}
	if refused != nil {
		return
	}
	for _, g := range s.begin(t) { // none if the generation has ended
		s.spawn(g.arm)
	}
}

// begin has t serve the session, unless it has ended. It returns the grants whose loss
// is to be told. The end of t's stream comes before survives, which has it serve no more:
// whichever is later here finds what the other has done.
func (s *session) begin(t *generation) (watched []*grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || t.over.Err() != nil {
		return nil
	}
	t.ready = true
	s.serveReady(t)
	for _, p := range s.owned {
		if g, ok := p.(*grant); ok && g.watched {
			watched = append(watched, g)
		}
	}
	return watched
}

// A possession is what the next plugin resumes: a grant or a part.
type possession interface {
	resume(ctx context.Context) error // asks the plugin that ctx names
	drop(reason error)                // was not resumed
	knownBy() *home
}

// home is whose plugin knows a possession.
type home struct{ at *generation } // under the session's mu

func (h *home) knownBy() *home { return h }

// resumeAll resumes possessions and contenders until there are no more. From then on only what
// this plugin grants counts.
func (s *session) resumeAll(ctx context.Context, t *generation) bool {
	for {
		rest, turns, all := s.notResumed(t)
		if all || ctx.Err() != nil {
			return all
		}
		var work sync.WaitGroup
		places := make(chan struct{}, atOnce)
		for _, p := range rest {
			places <- struct{}{}
			work.Go(func() { defer func() { <-places }(); s.resumeOne(ctx, t, p) })
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

// notResumed returns what the plugin of a generation has not resumed, and the turns that it offers
// to contenders. When all were resumed, the generation is the owner from now on, and all is true.
func (s *session) notResumed(t *generation) (rest []possession, turns []turn, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taker = t
	for _, p := range s.owned {
		if p.knownBy().at != t {
			rest = append(rest, p)
		}
	}
	for _, w := range s.waiters {
		if (w.znode != "" || w.anew) && w.at != t {
			offered := turn{t, make(chan struct{})}
			w.offer(offered)
			turns = append(turns, offered)
		}
	}
	if all = len(rest)+len(turns) == 0; all {
		s.owner, s.taker = t, nil
	}
	return rest, turns, all
}

// resumeOne has the plugin resume something, or tells its loss.
func (s *session) resumeOne(ctx context.Context, t *generation, p possession) {
	err, ok := s.retry(t.plugin.to(ctx), p.resume)
	switch {
	case !ok: // the plugin may have ended, which the stream tells
	case err != nil:
		p.drop(err)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		p.knownBy().at = t
	}
}

// retry makes a call until the plugin has answered it, which is ok, or ctx ends.
func (s *session) retry(ctx context.Context, rpc func(context.Context) error) (refused error, ok bool) {
	for {
		err := rpc(ctx)
		if e, said := wire.Error(err); err == nil || said && definite(e) {
			return e, true
		}
		if !s.linger(ctx, retryPause) {
			return nil, false
		}
	}
}

// resume has another plugin resume a grant.
func (g *grant) resume(ctx context.Context) error {
	a, err := g.ask(ctx, g.id, &pb.Grant{Token: int64(g.token), Znode: g.znode})
	if err == nil && recipes.Token(a.GetGrant().GetToken()) != g.token {
		err = wire.ToStatus(fmt.Errorf("%w: it was resumed with token %d", errNotResumed, a.GetGrant().GetToken()), nil)
	}
	return err
}

// errNotResumed ends a grant whose session goes on in another plugin.
var errNotResumed = fmt.Errorf("%w: the plugin has ended, and the next one has not resumed it", recipes.ErrNotHeld)

// drop ends a grant that was not resumed.
func (g *grant) drop(reason error) {
	if !errors.Is(reason, recipes.ErrNotHeld) {
		reason = fmt.Errorf("%w: %w", errNotResumed, reason)
	}
	g.s.forget(g.id)
	g.lose(reason)
}
