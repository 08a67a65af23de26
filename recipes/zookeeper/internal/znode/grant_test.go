package znode

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A check of another session's grant would pass as long as its znode exists, even long
// after this session was notified of the loss. So the check is refused, and nothing is
// sent.
func TestHeldTakesOnlyGrantsOfItsSession(t *testing.T) {
	srv, s, next := two(t)
	ctx := t.Context()
	own := must.Get(CreateEphemeral(ctx, s, "/g", "own", "", nil, s.Ensure))(t)
	other := must.Get(CreateEphemeral(ctx, next, "/g", "other", "", nil, next.Ensure))(t)
	before := srv.Counters().Requests[zkserver.OpMulti]
	for what, grant := range map[string]recipes.Grant{"of another session": other, "of another implementation": struct{ recipes.Grant }{own}} {
		if err := own.Write(ctx, recipes.Held(own), recipes.Held(grant)); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if sent := srv.Counters().Requests[zkserver.OpMulti] - before; sent > 0 {
		t.Errorf("%d transactions were sent", sent)
	}
	must.Report(t, own.Write(ctx, recipes.Held(own)))
}
