package session

// For tests outside of the package.
const IdleReceipts = idleReceipts

// Places is how many places the session remembers.
func (s *Session) Places() int {
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	return len(s.places.byPath)
}
