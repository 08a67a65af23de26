package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A part is what a session has in a transaction: the coordinator's place, or a site.
type part struct {
	request string // that asked for it; to abandon that gives a coordinator's place up
	name    string // of the transaction; empty for a site
	ask     func(context.Context) error

	// Under the session's mu:
	at   *tenure // whose plugin knows it
	lost error   // why none does
}

// has notes a part, until dropPart. To take it up twice does no harm. Where sessions do
// not outlive their plugins there is nothing to note.
func (s *session) has(key string, p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumable && s.err == nil {
		p.at = s.owner
		s.parts[key] = p
	}
}

func (s *session) part(key string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[key]
}

// dropPart forgets a part, unless another one has taken its place. The next plugin does
// not know it, because of lost.
func (s *session) dropPart(key string, p *part, lost error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.lost = lost
	if s.parts[key] == p {
		delete(s.parts, key)
	}
}

// takePart has the plugin of a tenure take up a part, or notes its loss.
func (s *session) takePart(ctx context.Context, t *tenure, key string, p *part) {
	for {
		err := p.ask(t.plugin.to(ctx))
		e, said := wire.Error(err)
		switch {
		case err == nil:
			s.mu.Lock()
			defer s.mu.Unlock()
			p.at = t
			return
		case said && !errors.Is(e, recipes.ErrSessionLost) && !errors.Is(e, recipes.ErrUnavailable) && !errors.Is(e, recipes.ErrThrottled):
			s.dropPart(key, p, fmt.Errorf("the plugin has ended, and the next one has not taken this up: %w", e))
			return
		}
		if !rest(ctx) { // the plugin may have ended, which the stream tells
			return
		}
	}
}

func (s *session) lossOf(p *part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.lost
}
