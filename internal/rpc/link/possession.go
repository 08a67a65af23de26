package link

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
//
// Like the opening of a session, it first waits until it is known which connection carries calls.
// A call that is sent before keeps a gRPC stream for as long as it waits.
func (s *Session) resumePossessions(gen *generation) {
	defer close(gen.resumeEnded)
	ctx, cancel := context.WithCancel(s.over)
	defer cancel()
	defer context.AfterFunc(gen.over, cancel)()
	select {
	case <-gen.calls.Settled():
	case <-ctx.Done():
		return
	}
	if !s.resumeAll(ctx, gen) {
		return
	}
	refused, _ := s.retry(gen.plugin.to(ctx), func(ctx context.Context) error {
		_, err := s.client.sessions.DropRest(ctx, &pb.DropRestRequest{Session: s.handle})
		return err
	})
	if refused != nil && gen.over.Err() == nil {
		s.lose(fmt.Errorf("%w: the session was resumed, and the znodes that were not resumed cannot be deleted: %w", recipes.ErrPluginLost, refused))
	}
	if refused != nil {
		return
	}
	for _, g := range s.startServing(gen) { // no grants if the generation has ended
		s.Spawn(g.watchLoss)
	}
}

// startServing makes gen serve the session, unless gen has ended. It returns the grants whose loss
// the plugin must report.
//
// When gen's stream ends, gen.over ends first, and survives clears s.serving afterwards under mu.
// So either startServing sees that gen.over has ended, or survives sees that gen serves the session.
func (s *Session) startServing(gen *generation) (watched []*Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || gen.over.Err() != nil {
		return nil
	}
	gen.ready = true
	s.serveReady(gen)
	for _, p := range s.owned {
		if g, ok := p.(*Grant); ok && g.watched {
			watched = append(watched, g)
		}
	}
	return watched
}

// A possession is a grant or a part, which the next plugin resumes.
type possession interface {
	resume(ctx context.Context) error // resumes it in the plugin that ctx names
	drop(reason error)                // ends it, because it was not resumed
	resumedIn() *location
}

// location records in which generation a possession was granted or last resumed.
type location struct{ at *generation } // under the session's mu

func (h *location) resumedIn() *location { return h }

// resumeAll resumes possessions and contenders until there are no more, and reports whether
// it has finished. From then on only grants of this plugin count.
func (s *Session) resumeAll(ctx context.Context, gen *generation) bool {
	for {
		rest, offers, all := s.notResumed(gen)
		if all || ctx.Err() != nil {
			return all
		}
		var work sync.WaitGroup
		free := make(chan struct{}, atOnce)
		for _, p := range rest {
			free <- struct{}{}
			work.Go(func() { defer func() { <-free }(); s.resumeOne(ctx, gen, p) })
		}
		for _, o := range offers {
			select {
			case <-o.done:
			case <-ctx.Done():
			}
		}
		work.Wait()
	}
}

// notResumed returns the possessions that the generation's plugin has not resumed. It offers the
// pending calls that were not resumed to that plugin, and returns these offers. If there is neither,
// all is true, and the generation is the owner from now on.
func (s *Session) notResumed(gen *generation) (rest []possession, offers []offer, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resuming = gen
	for _, p := range s.owned {
		if p.resumedIn().at != gen {
			rest = append(rest, p)
		}
	}
	for _, c := range s.pending {
		if (c.znode != "" || c.unplaced) && c.at != gen {
			o := offer{gen, make(chan struct{})}
			c.replaceOffer(o)
			offers = append(offers, o)
		}
	}
	if all = len(rest)+len(offers) == 0; all {
		s.owner, s.resuming = gen, nil
	}
	return rest, offers, all
}

// resumeOne makes the plugin resume one possession. If the plugin refuses, resumeOne drops it.
func (s *Session) resumeOne(ctx context.Context, gen *generation, p possession) {
	err, ok := s.retry(gen.plugin.to(ctx), p.resume)
	switch {
	case !ok: // the plugin may have ended; the stream reports that
	case err != nil:
		p.drop(err)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		p.resumedIn().at = gen
	}
}

// retry repeats a call until the plugin answers it or ctx ends. ok reports an answer; refused
// is its error.
func (s *Session) retry(ctx context.Context, rpc func(context.Context) error) (refused error, ok bool) {
	for {
		err := rpc(ctx)
		if e, answered := wire.Error(err); err == nil || answered && definite(e) {
			return e, true
		}
		if !s.sleep(ctx, retryPause) {
			return nil, false
		}
	}
}

// resume makes another plugin resume the grant.
func (g *Grant) resume(ctx context.Context) error {
	g.s.mu.Lock()
	request := g.request
	g.s.mu.Unlock()
	a, err := g.s.client.grants.Acquire(ctx, resuming(request, &pb.Grant{Token: int64(g.token), Znode: g.znode}))
	if err == nil && recipes.Token(a.GetGrant().GetToken()) != g.token {
		err = wire.ToStatus(fmt.Errorf("%w: it was resumed with token %d", errNotResumed, a.GetGrant().GetToken()))
	}
	return err
}

// errNotResumed ends a grant whose session continues in another plugin.
var errNotResumed = fmt.Errorf("%w: the plugin has ended, and the next one has not resumed it", recipes.ErrNotHeld)

// drop ends a grant that was not resumed.
func (g *Grant) drop(reason error) {
	if !errors.Is(reason, recipes.ErrNotHeld) {
		reason = fmt.Errorf("%w: %w", errNotResumed, reason)
	}
	g.Forget()
	g.Lose(reason)
}

// A Part is the session's role in a transaction: the coordinator, or a site. The next plugin
// resumes it.
type Part struct {
	Key     string                      // identifies the part in its session
	Request string                      // the id of the call that began it; abandoning the id ends a coordinator's role
	Name    string                      // the transaction's name; empty for a site
	Resume  func(context.Context) error // asks a plugin to resume it
	location

	s    *Session // set by Keep
	lost error    // why no plugin has it; under the session's mu
}

// Keep records a part until its end, so that the next plugin resumes it. Resuming it twice
// does no harm. If the session cannot outlive its plugin, nothing is recorded.
func (s *Session) Keep(p *Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.s = s
	if s.resumable && s.err == nil {
		p.at = s.owner
		s.owned[p.Key] = p
	}
}

// Part returns the part with that key, or nil.
func (s *Session) Part(key string) *Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.owned[key].(*Part)
	return p
}

// DelayDropRest is for a call that begins a part: DropRest, which could delete it, waits for done.
func (s *Session) DelayDropRest(options Options) (_ Options, done func()) {
	c := newPendingCall(nil, true)
	options.pending = c
	s.addPending(options.abandonID, c)
	return options, func() { s.removePending(options.abandonID, c) }
}

// End removes a part, so that no further plugin resumes it; lost is the reason. If another
// part has replaced it, that one stays.
func (p *Part) End(lost error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.lost = lost
	if p.s.owned[p.Key] == p {
		delete(p.s.owned, p.Key)
	}
}

// Lost returns the reason why no plugin has the part, or nil.
func (p *Part) Lost() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.lost
}

func (p *Part) resume(ctx context.Context) error { return p.Resume(ctx) }

func (p *Part) drop(reason error) {
	p.End(fmt.Errorf("the plugin has ended, and the next one has not resumed this: %w", reason))
}
