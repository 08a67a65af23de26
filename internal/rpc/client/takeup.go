package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// atOnce bounds how many grants of a session are taken up at a time.
const atOnce = 32

// takeUp has the plugin of a tenure take up what the session has, and then serve it.
// What is not taken up is lost, and its owner is told so before DropRest deletes it. It
// gives up when the tenure ends: the next one takes up the same.
func (s *session) takeUp(t *tenure) {
	defer close(t.took)
	ctx, cancel := context.WithCancel(s.over)
	defer cancel()
	defer context.AfterFunc(t.over, cancel)()
	if !s.takeAll(ctx, t) {
		return
	}
	if err := s.dropRest(ctx, t); err != nil {
		if ctx.Err() == nil {
			s.lose(fmt.Errorf("%w: the session was resumed, and what is left of it cannot be deleted: %w", recipes.ErrPluginLost, err))
		}
		return
	}
	for _, g := range s.begin(t) {
		s.spawn(g.arm)
	}
}

// begin has t serve the session, unless it has ended. It returns the grants whose loss
// is to be told. The end of t's stream comes before survives, which has it serve no more:
// whichever is later here finds what the other has done.
func (s *session) begin(t *tenure) (watched []*grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || t.over.Err() != nil {
		return nil
	}
	t.ready = true
	s.serveReady(t)
	for _, g := range s.owned {
		if g.watched {
			watched = append(watched, g)
		}
	}
	return watched
}

// takeAll takes up grants, parts and contenders until there are no more. From then on only what
// this plugin grants counts.
func (s *session) takeAll(ctx context.Context, t *tenure) bool {
	for {
		grants, parts, turns, all := s.untaken(t)
		if all || ctx.Err() != nil {
			return all
		}
		var work sync.WaitGroup
		places := make(chan struct{}, atOnce)
		for _, g := range grants {
			places <- struct{}{}
			work.Go(func() { defer func() { <-places }(); s.takeGrant(ctx, t, g) })
		}
		for key, p := range parts {
			places <- struct{}{}
			work.Go(func() { defer func() { <-places }(); s.takePart(ctx, t, key, p) })
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

// untaken returns the grants and parts that the plugin of a tenure has not taken up, and
// the turns that it offers to contenders. When all were taken up, the tenure is the owner
// from now on, and all is true.
func (s *session) untaken(t *tenure) (grants []*grant, parts map[string]*part, turns []turn, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taker = t
	for _, g := range s.owned {
		if g.at != t {
			grants = append(grants, g)
		}
	}
	parts = make(map[string]*part)
	for key, p := range s.parts {
		if p.at != t {
			parts[key] = p
		}
	}
	for _, j := range s.joins {
		if (j.znode != "" || j.anew) && j.at != t {
			offered := turn{t, make(chan struct{})}
			j.offer(offered)
			turns = append(turns, offered)
		}
	}
	if all = len(grants)+len(parts)+len(turns) == 0; all {
		s.owner, s.taker = t, nil
	}
	return grants, parts, turns, all
}

// takeGrant has the plugin take up a grant, or tells its loss.
func (s *session) takeGrant(ctx context.Context, t *tenure, g *grant) {
	if g.ask == nil {
		s.drop(g, errNotTakenUp)
		return
	}
	for {
		a, err := g.ask(t.plugin.to(ctx), g.id, &pb.Grant{Token: int64(g.token), Znode: g.znode})
		e, said := wire.Error(err)
		switch {
		case err == nil && recipes.Token(a.GetGrant().GetToken()) == g.token:
			s.mu.Lock()
			defer s.mu.Unlock()
			g.at = t
			return
		case err == nil:
			s.drop(g, fmt.Errorf("%w: it was taken up with token %d", errNotTakenUp, a.GetGrant().GetToken()))
			return
		case said && errors.Is(e, recipes.ErrNotHeld) && !errors.Is(e, recipes.ErrSessionLost):
			s.drop(g, e)
			return
		case said && !errors.Is(e, recipes.ErrSessionLost) && !errors.Is(e, recipes.ErrUnavailable) && !errors.Is(e, recipes.ErrThrottled):
			s.drop(g, fmt.Errorf("%w: %w", errNotTakenUp, e))
			return
		}
		if !rest(ctx) { // the plugin may have ended, which the stream tells
			return
		}
	}
}

// errNotTakenUp ends a grant whose session goes on in another plugin.
var errNotTakenUp = fmt.Errorf("%w: the plugin has ended, and the next one has not taken it up", recipes.ErrNotHeld)

// drop ends a grant that was not taken up.
func (s *session) drop(g *grant, reason error) {
	s.forget(g.id)
	g.lose(reason)
}

// dropRest has the plugin delete what was not taken up.
func (s *session) dropRest(ctx context.Context, t *tenure) error {
	for {
		_, err := s.sessions.DropRest(t.plugin.to(ctx), &pb.DropRestRequest{Session: s.handle})
		e, said := wire.Error(err)
		switch {
		case err == nil:
			return nil
		case said && !errors.Is(e, recipes.ErrUnavailable) && !errors.Is(e, recipes.ErrThrottled) && !errors.Is(e, recipes.ErrUnknownOutcome) && !errors.Is(e, recipes.ErrSessionLost):
			return e
		}
		if !rest(ctx) {
			return ctx.Err()
		}
	}
}

// rest waits for a moment. It reports false if ctx has ended.
func rest(ctx context.Context) bool {
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}
