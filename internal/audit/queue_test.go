package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	q1, q2, q3, q4 = "/q/queue-0000000001", "/q/queue-0000000002", "/q/queue-20-0000000003", "/q/queue-0000000004"
	c1, c2         = "/q/claims/queue-0000000001-", "/q/claims/queue-0000000002-"
	id             = "|0f8fad5b-d9cb-469f-a165-70867728950e"
)

// TestTheElementsOfAQueue: the report counts how each element was removed.
func TestTheElementsOfAQueue(t *testing.T) {
	for _, tt := range []struct {
		name             string
		steps            []string
		want             audit.Queue
		violations, sees []string
	}{
		{"taken", []string{"0 1 *" + q1 + " */q/r=", "5 2 -" + q1 + " =/q/r"}, audit.Queue{Put: 1, Taken: 1}, nil, nil},
		{"received and acknowledged", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 2 -" + c1 + "1 -" + q1}, audit.Queue{Put: 1, Received: 1, Acked: 1}, nil, nil},
		{"given back, and received again", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 2 -" + c1 + "1", "6 2 +" + c1 + "2 =" + q1},
			audit.Queue{Put: 1, Received: 2, Again: 1, Returned: 1, Left: 1, Claimed: 1}, nil, nil},
		{"the consumer dies", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 2 expire"}, audit.Queue{Put: 1, Received: 1, Expired: 1, Left: 1}, nil, nil},
		{"a dead letter", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 2 -" + c1 + "1 */q/dead/queue-0000000001 -" + q1}, audit.Queue{Put: 1, Received: 1, Dead: 1}, nil, nil},
		{"an operator deletes", []string{"0 1 *" + q3, "5 9 -" + q3}, audit.Queue{Put: 1, Deleted: 1}, nil, []string{audit.Unclaimed}},
		{"what a consumer has", []string{"0 1 *" + q2, "1 2 +" + c2 + "1 =" + q2, "5 9 -" + q2}, audit.Queue{Put: 1, Received: 1, Deleted: 1}, []string{audit.Stolen}, nil},
		{"an operator deletes the claim", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 9 -" + c1 + "1", "6 3 +" + c1 + "2 =" + q1, "7 3 -" + c1 + "2"},
			audit.Queue{Put: 1, Received: 2, Again: 1, Returned: 1, Left: 1}, []string{audit.Broken}, nil},
		{"and the element", []string{"0 1 *" + q1, "1 2 +" + c1 + "1 =" + q1, "5 9 -" + c1 + "1 -" + q1}, audit.Queue{Put: 1, Received: 1, Deleted: 1}, []string{audit.Broken, audit.Stolen}, nil},
		{"two receive", []string{"0 1 *" + q2, "1 2 +" + c2 + "1 =" + q2, "2 3 +" + c2 + "2 =" + q2}, audit.Queue{Put: 1, Received: 2, Again: 1, Left: 1, Claimed: 1}, []string{audit.TwoClaims}, nil},
		{"an ephemeral element", []string{"0 1 +" + q4, "5 1 close=" + q4}, audit.Queue{Put: 1, Deleted: 1}, nil, []string{audit.Unclaimed}},
		{"and its consumer, the same session", []string{"0 1 +" + q4, "1 1 +/q/claims/queue-0000000004-1 =" + q4, "5 1 expire"}, audit.Queue{Put: 1, Received: 1, Expired: 1, Deleted: 1}, nil, []string{audit.Unclaimed}},
		{"of kazoo", []string{"0 1 */q/entry-100-0000000001", "5 2 -/q/entry-100-0000000001"}, audit.Queue{Put: 1, Taken: 1}, nil, nil},
		{"of Curator", []string{"0 1 */q/qn-0000000001 */q/qn-x", "5 2 -/q/qn-0000000001"}, audit.Queue{Put: 1, Taken: 1}, nil, nil},
	} {
		r, _ := auditOf(t, from(0, tt.steps...), "/q")
		if len(r.Queues) != 1 || len(r.Gaps) > 0 {
			t.Fatalf("%s: queues %+v, gaps %q", tt.name, r.Queues, r.Gaps)
		}
		got := *r.Queues[0]
		if n := got.Age.Count(); n != got.Taken+got.Acked || n > 0 && got.Age.Quantile(1) != 5*time.Millisecond {
			t.Errorf("%s: %d ages, of %v at most", tt.name, n, got.Age.Quantile(1))
		}
		got.Path, got.Dialect, got.Age = "", "", audit.Durations{}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || !slices.Equal(kinds(r.Violations), tt.violations) || !slices.Equal(kinds(r.Events), tt.sees) {
			t.Errorf("%s: %+v, violations %+v, events %+v", tt.name, got, r.Violations, r.Events)
		}
	}
	claimed := logtest.Snapshot(2, 1000, txnlog.Node{Path: []byte(c1 + "1"), Czxid: 4, EphemeralOwner: 2}, txnlog.Node{Path: []byte(q1), Czxid: 3})
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"snapshot.5": claimed, "log.6": from(5, "5 9 -"+q1).Bytes})))(t)
	if r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/q"}))(t); !slices.Equal(kinds(r.Violations), []string{audit.Stolen}) || r.Queues[0].Put+r.Queues[0].Received > 0 {
		t.Errorf("%+v, %+v", r.Queues[0], r.Violations)
	}
	files = must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": from(0, "0 1 *"+q1).Bytes, "log.4": from(3, "5 1 *"+q2).Bytes})))(t)
	if r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/q"}))(t); r.Queues[0].Put != 2 || r.Queues[0].Left != 1 {
		t.Errorf("after a gap: %+v", r.Queues[0])
	}
}

// TestTheDecisionsOfTransactions: each ID has one decision.
func TestTheDecisionsOfTransactions(t *testing.T) {
	r, _ := auditOf(t, from(0, "0 1 */t/decision=commit"+id, "1 1 -/t/decision", "2 1 */t/decision=abort"+id+"x", "3 1 */u/decision=maybe"+id, "4 1 -/t/decision", "5 1 */t/decision=commit"+id+"x"), "/")
	var got []string
	for _, d := range r.Decisions {
		got = append(got, d.Path+" "+d.Text)
	}
	if !slices.Equal(got, []string{"/t commit", "/t abort", "/t commit"}) || !slices.Equal(kinds(r.Violations), []string{audit.TwoDecisions}) {
		t.Errorf("%q, %+v", got, r.Violations)
	}
}

// TestQueuesAndTransactionsOnARealServer: the recipes write what the audit reads.
func TestQueuesAndTransactionsOnARealServer(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	ctx := t.Context()
	s := open(t, e)
	for path, d := range map[string]recipes.Dialect{"/ours": recipes.ZooKeeper, "/curator": recipes.Curator, "/kazoo": recipes.Kazoo} {
		q := must.Get(s.Queue(path, recipes.QueueConfig{Dialect: d, MaxDeliveries: map[bool]int{true: 1}[d == recipes.ZooKeeper]}))(t)
		must.Get(q.PutMany(ctx, []byte("a"), []byte("b"), []byte("c")))(t)
		must.Get(q.Take(ctx))(t)
		if d == recipes.ZooKeeper {
			must.Do(t, must.Get(q.Receive(ctx))(t).Ack(ctx))
			must.Do(t, must.Get(q.Receive(ctx))(t).Return(ctx)) // the only delivery
		}
	}
	for _, vote := range []recipes.Vote{recipes.VoteCommit, recipes.VoteAbort} {
		tx := must.Get(s.Transaction("/tx/"+string(vote), recipes.TransactionConfig{}))(t)
		must.Do(t, tx.Begin(ctx, nil, "one"))
		must.Do(t, must.Get(tx.Join(ctx, "one"))(t).Vote(ctx, vote))
		must.Get(tx.Coordinate(ctx))(t)
	}
	r, _ := auditFiles(t, e, "/")
	want := []string{"/curator curator 3 1 0 0 0 2", "/kazoo kazoo 3 1 0 0 0 2", "/ours zookeeper 3 1 2 1 1 0"}
	for i, q := range r.Queues {
		got := fmt.Sprintln(q.Path, q.Dialect, q.Put, q.Taken, q.Received, q.Acked, q.Dead, q.Left)
		if len(r.Queues) != len(want) || got != want[i]+"\n" {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if len(r.Decisions) != 2 || r.Decisions[0].Text != "commit" || !strings.HasPrefix(r.Decisions[1].Text, "abort") || len(r.Violations)+len(r.Events) > 0 {
		t.Errorf("decisions %+v, violations %+v, events %+v", r.Decisions, r.Violations, r.Events)
	}
}
