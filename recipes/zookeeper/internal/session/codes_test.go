package session_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAnswersWithoutAName: go-zookeeper knows only the number of these answers.
func TestAnswersWithoutAName(t *testing.T) {
	const opGetData = 4
	srv, ctx := embedded(t), bounded(t)
	for code, want := range map[int32]error{
		-124: recipes.ErrSASLRequired, -125: recipes.ErrQuota, -127: recipes.ErrThrottled, -126: recipes.ErrInternal,
	} {
		refusing := newRefuser(t, srv.Addr(), opGetData, code)
		s := open(t, recipes.SessionConfig{Servers: []string{refusing.addr}})
		refusing.refuse.Store(true)
		_, err := s.Get(ctx, "/")
		for _, sentinel := range []error{recipes.ErrSASLRequired, recipes.ErrQuota, recipes.ErrThrottled, recipes.ErrInternal} {
			if errors.Is(err, sentinel) != (sentinel == want) {
				t.Errorf("%d: %v; want %v", code, err, want)
			}
		}
	}
}
