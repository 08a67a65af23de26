package client

import (
	"context"
	"fmt"
)

// A part is the session's role in a transaction: the coordinator, or a site.
type part struct {
	s       *session
	key     string
	request string // the id of the call that began it; abandoning the id ends a coordinator's role
	name    string // the transaction's name; empty for a site
	ask     func(context.Context) error
	location

	lost error // why no plugin has it; under the session's mu
}

// addPart records a part until its end, so that the next plugin resumes it. Resuming it twice
// does no harm. If the session cannot outlive its plugin, nothing is recorded.
func (s *session) addPart(p *part) {
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

// end removes a part, so that no further plugin resumes it; lost is the reason. If another
// part has replaced it, that one stays.
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
