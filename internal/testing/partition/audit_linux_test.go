package partition_test

import (
	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// checkLogs audits the logs of each server: after all faults, none shows that ZooKeeper granted
// something twice, and they agree on who held.
func (r *run) checkLogs() {
	holds := map[int64]string{} // the znode, by token
	for i := range servers {
		files := must(txnlog.Find(r.ensemble.Server(i).DataDir()))
		report, err := audit.Audit(r.Context(), files, audit.Config{Path: "/", Hold: func(h audit.Hold) error {
			znode := h.Line + "/" + h.Znode
			if other, ok := holds[h.Token]; ok && other != znode {
				r.Errorf("the token %d is that of %s, and in the log of server %d of %s", h.Token, other, i, znode)
			}
			holds[h.Token] = znode
			return nil
		}})
		if err != nil {
			r.Errorf("the audit of server %d: %v", i, err)
			continue
		}
		for _, v := range report.Violations {
			r.Errorf("the log of server %d: %+v", i, v)
		}
		for _, l := range report.Lines {
			r.Logf("the log of server %d: %s %s: %d grants, at most %d holders, ended %v", i, l.Path, l.Kind, l.Grants, l.Most, l.Ended)
		}
		r.Logf("the log of server %d: %d queues, %d decisions, %d events", i, len(report.Queues), len(report.Decisions), len(report.Events))
		r.Logf("the log of server %d: %d transactions in %d files, gaps %q", i, report.Transactions, report.Logs, report.Gaps)
	}
}
