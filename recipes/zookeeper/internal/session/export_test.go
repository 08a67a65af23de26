package session

// For tests outside of the package.
const IdleReceipts = idleReceipts

// Places is how many places the session remembers.
func (s *Session) Places() int {
	s.bare.mu.Lock()
	defer s.bare.mu.Unlock()
	return len(s.bare.byPath)
}

// WatchesKept is how many watches the session remembers.
func (s *Session) WatchesKept() int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return len(s.watches.byKey)
}

// Holds is how many holds have begun and not ended.
func (s *Session) Holds() int64 { return s.lease.Holds() }
