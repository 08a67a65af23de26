package interop_test

import (
	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// audited audits the log of the server: it must contain at least the turns that the peers have
// reported, and no violation. It returns how many sessions expired while they held.
func (m *match) audited() (expired int) {
	if m.pair.free || m.pair.meet {
		return 0 // no line
	}
	files := must.Get(txnlog.Find(ensembletest.Shared(m.t).Server(0).DataDir()))(m.t)
	r := must.Get(audit.Audit(m.t.Context(), files, audit.Config{Path: m.path}))(m.t)
	grants, turns := 0, -m.reads // a writer also reads in some turns
	for _, l := range r.Lines {
		m.t.Logf("interop: audit: %s of %s: %d grants, at most %d holders, ended %v", l.Kind, l.Dialect, l.Grants, l.Most, l.Ended)
		expired += l.Ended[audit.Expired]
		if (l.Kind == "semaphore") == (m.pair.theirs == "semaphore") {
			grants += l.Grants
		}
	}
	for _, n := range m.turns {
		turns += n
	}
	if grants < turns || len(r.Violations) > 0 {
		m.t.Errorf("the audit of the log has %d grants of %d turns, and the violations %+v", grants, turns, r.Violations)
	}
	return expired
}
