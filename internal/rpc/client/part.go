package client

import (
	"context"
	"fmt"
)

// A part is what a session has in a transaction: the coordinator's place, or a site.
type part struct {
	s       *session
	key     string
	request string // that asked for it; to abandon that gives a coordinator's place up
	name    string // of the transaction; empty for a site
	ask     func(context.Context) error
	home

	lost error // why no plugin knows it; under the session's mu
}

// has notes a part, until its end. To take it up twice does no harm. Where sessions do
// not outlive their plugins there is nothing to note.
func (s *session) has(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumable && s.err == nil {
		p.at = s.owner
		s.owned[p.key] = p
	}
}

func (s *session) part(key string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.owned[key].(*part)
	return p
}

// end forgets a part, unless another one has taken its place. The next plugin does not know
// it, because of lost.
func (p *part) end(lost error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.lost = lost
	if p.s.owned[p.key] == p {
		delete(p.s.owned, p.key)
	}
}

func (p *part) loss() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.lost
}

func (p *part) resume(ctx context.Context) error { return p.ask(ctx) }

func (p *part) drop(reason error) {
	p.end(fmt.Errorf("the plugin has ended, and the next one has not taken this up: %w", reason))
}
