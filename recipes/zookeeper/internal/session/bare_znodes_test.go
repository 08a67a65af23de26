package session_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// The session forgets a bare znode that is known to be deleted, however it was deleted.
func TestDeletedBareZnodesAreForgotten(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	for name, end := range map[string]func(session.BareZnode) error{
		"handed off": func(p session.BareZnode) error { return <-s.Handoff(ctx, p) },
		"deleted":    func(p session.BareZnode) error { return <-s.DeleteBare(p) },
		"forgotten":  func(p session.BareZnode) error { s.ForgetBare(p); return nil },
		"deleted by another client": func(p session.BareZnode) error {
			if err := s.DeleteOnce(ctx, p.Path, -1); err != nil {
				return err
			}
			if err := <-s.DeleteBare(p); !session.IsGone(err) {
				t.Errorf("deleted again: %v", err)
			}
			return nil
		},
	} {
		place := bare(t, s, "/line")
		if s.Places() != 1 {
			t.Errorf("%s: %d places before", name, s.Places())
		}
		if err := end(place); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Places() != 0 {
			t.Errorf("%s: %d places are remembered", name, s.Places())
		}
	}
}
