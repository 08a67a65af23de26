package status

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lost is a grant that was lost for this reason.
type lost struct {
	recipes.Grant
	reason error
}

func (l lost) Err() error { return l.reason }

// TestAnAnswerIsOnePrintableLine: it is, whatever text a server has sent about the loss.
func TestAnAnswerIsOnePrintableLine(t *testing.T) {
	s := &Server{grants: map[*held]struct{}{{"/l", lost{reason: errors.New("x\x1b[2J\n\u009b\xff")}}: {}}}
	w := httptest.NewRecorder()
	s.leader(w, nil)
	if got, want := w.Body.String(), `x\x1b[2J\n\u009b\xff`+"\n"; w.Code != 503 || got != want {
		t.Errorf("%d %q, want %q", w.Code, got, want)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
