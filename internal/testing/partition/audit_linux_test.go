package partition_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// checkLogs audits the logs of each server: after all faults, none shows that ZooKeeper granted
// something twice, and they agree on the holders. Each grant that the clients and the other
// libraries got is in the logs.
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
			if r.replaced(v) {
				r.Logf("the log of server %d: CURATOR HAS REPLACED A SESSION: %+v", i, v)
				continue
			}
			r.Errorf("the log of server %d: %+v", i, v)
		}
		for _, l := range report.Lines {
			r.Logf("the log of server %d: %s %s: %d grants, at most %d holders, ended %v", i, l.Path, l.Kind, l.Grants, l.Most, l.Ended)
		}
		r.Logf("the log of server %d: %d queues, %d decisions, %d events", i, len(report.Queues), len(report.Decisions), len(report.Events))
		r.Logf("the log of server %d: %d transactions in %d files, gaps %q", i, report.Transactions, report.Logs, report.Gaps)
	}
	turns := map[string]int{}
	for _, m := range r.messages {
		if m.Kind != granted && m.Kind != turn {
			continue
		}
		if holds[int64(m.Token)] == "" {
			r.Errorf("%s: the token %d was granted, and no log has its hold", m.Path, m.Token)
		}
		turns[string(m.Kind)+" "+m.Path]++
	}
	r.Logf("the logs have these grants: %v", turns)
}

// replaced reports whether a session that is not ours has deleted the znode of another that is not
// ours, in Curator's line. After a disconnection as long as the session timeout, Curator opens
// another session. It does not wait until the servers expire the former one, whose lock it deletes.
func (r *run) replaced(f audit.Finding) bool {
	var by, of int64
	_, holder, _ := strings.Cut(f.Text, "(session ")
	fmt.Sscanf(f.Text, "session 0x%x", &by)
	fmt.Sscanf(holder, "0x%x", &of)
	ours := func(m message) bool { return m.Session == by || m.Session == of }
	return f.Kind == audit.Broken && f.Line == libraries[0].path && by != 0 && of != 0 && !slices.ContainsFunc(r.messages, ours)
}
