package client

import (
	"context"
	"fmt"
)

// A part is the session's role in a transaction: the coordinator, or a site.
type part struct {
	s       *session
	key     string
	request string // the id of the call that began it; to abandon the id ends a coordinator's role
	name    string // the transaction's name; empty for a site
	ask     func(context.Context) error
	location

	lost error // why no plugin has it; under the session's mu
}

// has records a part until its end. To resume it twice does no harm. If sessions cannot
// outlive their plugins, nothing is recorded.
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

// end removes a part, unless another one has replaced it. The next plugin does not have it;
// lost is the reason.
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
	p.end(fmt.Errorf("the plugin has ended, and the next one has not resumed this: %w", reason))
}
