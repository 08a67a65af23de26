package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// history writes a log. Each step is a transaction of a session, at a time given in milliseconds.
// Its words are "+/l/lock-0000000001" (an ephemeral creation), "*/l=data" (a persistent one),
// "=/l/lock-0000000001=data" (a change of data), "-/l/lock-0000000001" (a deletion), "close" and
// "expire". The last two have "=/l/lock-0000000001" if the server logs what it deletes.
type history struct{ *logtest.Log }

func (h history) step(ms int, session int64, words ...string) {
	h.Time = start + int64(ms)
	var changes []txnlog.Change
	cxid := int32(1)
	for _, w := range words {
		path, data, _ := strings.Cut(w[1:], "=")
		data = strings.NewReplacer("~", " ", "|", "\n").Replace(data)
		c := txnlog.Change{Path: []byte(path), Data: []byte(data)}
		switch w[0] {
		case '+':
			c.Type, c.Ephemeral = txnlog.Create, true
		case '*':
			c.Type = txnlog.Create
		case '=':
			c.Type = txnlog.SetData
		case '-':
			c.Type = txnlog.Delete
		case 'e':
			cxid = 0
			fallthrough
		case 'c':
			c.Type = txnlog.CloseSession
			if data != "" {
				c.Deleted = [][]byte{[]byte(data)}
			}
		}
		changes = append(changes, c)
	}
	h.Txn(session, cxid, changes...)
}

const start = 1_700_000_000_000

// from returns a history of steps: "MS SESSION WORD...".
func from(zxid int64, steps ...string) history {
	h := history{logtest.NewLog(zxid)}
	for _, s := range steps {
		var ms int
		var session int64
		fields := strings.Fields(s)
		must2(fmt.Sscan(fields[0], &ms))
		must2(fmt.Sscan(fields[1], &session))
		h.step(ms, session, fields[2:]...)
	}
	return h
}

func must2(_ int, err error) {
	if err != nil {
		panic(err)
	}
}

// write writes files into a new directory, by name.
func write(t *testing.T, files map[string][]byte) string {
	dir := t.TempDir()
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return dir
}

// auditOf audits a log at a path.
func auditOf(t *testing.T, h history, path string) (*audit.Report, []audit.Hold) {
	t.Helper()
	var holds []audit.Hold
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": h.Bytes})))(t)
	r, err := audit.Audit(t.Context(), files, audit.Config{Path: path, Hold: func(h audit.Hold) error { holds = append(holds, h); return nil }})
	must.Do(t, err)
	return r, holds
}

// kinds returns the kinds of findings.
func kinds(findings []audit.Finding) (all []string) {
	for _, f := range findings {
		all = append(all, f.Kind)
	}
	return all
}

// shown is a hold as text: znode, grant and end in milliseconds, and how it ended.
func shown(holds []audit.Hold) (all []string) {
	for _, h := range holds {
		ms := func(t time.Time) string {
			if t.IsZero() {
				return "?"
			}
			return fmt.Sprint(t.UnixMilli() - start)
		}
		all = append(all, fmt.Sprintf("%s %s-%s %s", h.Znode, ms(h.Granted), ms(h.Ended), h.EndedBy))
	}
	return all
}

const (
	l1 = "lock-0000000001"
	l2 = "lock-0000000002"
	l3 = "lock-0000000003"
)

// The token of a number is the zxid of its claim, in logs and in a snapshot.
func TestTheTokenOfANumber(t *testing.T) {
	var tokens []int64
	note := audit.Config{Path: "/l", Hold: func(h audit.Hold) error { tokens = append(tokens, h.Token); return nil }}
	slot := []byte("zkrecipes: slot=0\nme")
	snapshot := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/l"), Czxid: 2, Data: []byte("permits=2")},
		txnlog.Node{Path: []byte("/l/x-lease-0000000001"), Data: slot, Czxid: 3, Mzxid: 4, Version: 1, EphemeralOwner: 1})
	log := from(5, "10 2 +/l/y-lease-0000000002", "20 2 =/l=permits=2 =/l/y-lease-0000000002=zkrecipes:~slot=1|", "30 1 close", "40 2 close")
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"snapshot.5": snapshot, "log.6": log.Bytes})))(t)
	must.Get(audit.Audit(t.Context(), files, note))(t)
	if !slices.Equal(tokens, []int64{4, 7}) {
		t.Errorf("tokens %d; want 4 and 7", tokens)
	}
}

// The data of a hold are those of the application, without marks of the recipes.
func TestTheDataOfAHold(t *testing.T) {
	for _, data := range []string{"me", "unlock|me", "zkrecipes:~downgraded|me", "_p_0f8fad5b-d9cb-469f-a165-70867728950e-unlock|zkrecipes:~x|me"} {
		if _, holds := auditOf(t, from(0, "0 1 +/l/"+l1+"="+data), "/l"); len(holds) != 1 || holds[0].Data != "me" {
			t.Errorf("%s: %+v", data, holds)
		}
	}
}

// TestWhoHeldWhen: the audit finds the holds of each recipe, and their violations.
func TestWhoHeldWhen(t *testing.T) {
	const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e-"
	const kazoo1, kazoo2, kazoo3, kazoo4 = "0f8fad5bd9cb469fa16570867728950e", "1f8fad5bd9cb469fa16570867728950e", "2f8fad5bd9cb469fa16570867728950e", "3f8fad5bd9cb469fa16570867728950e"
	for _, tt := range []struct {
		name       string
		steps      []string
		holds      []string
		violations []string
		events     []string
	}{
		{"a lock passes in order", []string{
			"0 1 */l", "0 1 +/l/" + l1, "10 2 +/l/" + l2, "20 3 +/l/" + guid + l3, "100 1 =/l/" + l1 + "= -/l/" + l1, "250 2 -/l/" + l2, "300 3 close",
		}, []string{l1 + " 0-100 handoff", l2 + " 100-250 released", guid + l3 + " 250-300 closed"}, nil, nil},
		{"a session expires", []string{"0 1 +/l/" + l1, "10 2 +/l/" + l2, "5000 1 expire"},
			[]string{l1 + " 0-5000 expired", l2 + " 5000-? "}, nil, []string{audit.Expired}},
		{"an operator deletes a holder", []string{"0 1 +/l/" + l1, "10 2 +/l/" + l2, "50 9 =/l/" + l1 + " -/l/" + l1},
			[]string{l1 + " 0-50 broken", l2 + " 50-? "}, []string{audit.Broken}, nil},
		{"an operator deletes a waiter", []string{"0 1 +/l/" + l1, "10 2 +/l/" + l2, "50 9 -/l/" + l2},
			[]string{l1 + " 0-? "}, nil, []string{audit.Removed}},
		{"a contender gets ahead", []string{"0 1 +/l/" + l2, "10 2 +/l/" + l1},
			[]string{l1 + " 10-? ", l2 + " 0-? "}, []string{audit.Order, audit.TwoHolders}, nil},
		{"and is granted before", []string{"0 1 +/l/" + l1, "1 2 +/l/" + l3, "2 3 +/l/" + l2, "5 1 close", "6 3 close"},
			[]string{l1 + " 0-5 closed", l2 + " 5-6 closed", l3 + " 6-? "}, []string{audit.Order, audit.Token}, nil},
		{"a write before a release is no handoff", []string{"0 1 +/l/" + l1, "1 1 =/l/" + l1, "2 1 -/l/" + l1}, []string{l1 + " 0-2 released"}, nil, nil},
		{"numbers wrap", []string{"0 1 +/l/lock-2147483646", "1 2 +/l/lock-2147483647", "2 3 +/l/lock-2147483647x", "3 3 +/l/lock--2147483648", "9 1 close", "10 2 close"},
			[]string{"lock-2147483646 0-9 closed", "lock-2147483647 9-10 closed", "lock--2147483648 10-? "}, nil, nil},
		{"a foreign lock is granted beside", []string{"0 1 +/l/" + l1, "10 2 +/l/" + kazoo1 + "__lock__0000000002", "2000 2 close", "3000 1 close"},
			[]string{kazoo1 + "__lock__0000000002 10-2000 closed", l1 + " 0-3000 closed"}, []string{audit.Beside}, nil},
		{"and is still there at the end", []string{"0 1 +/l/" + l1, "10 2 +/l/n_0000000002", "2000 3 */x"},
			[]string{l1 + " 0-? ", "n_0000000002 10-? "}, []string{audit.Beside}, nil},
		{"or has just joined", []string{"0 1 +/l/" + l1, "10 2 +/l/n_0000000002", "500 3 */x"}, []string{l1 + " 0-? ", "n_0000000002 10-? "}, nil, nil},
		{"or its session expires", []string{"0 1 +/l/" + l1, "10 2 +/l/n_0000000002", "500 2 expire"},
			[]string{l1 + " 0-? ", "n_0000000002 10-500 expired"}, []string{audit.Beside}, []string{audit.Expired}},
		{"a contender of another recipe is refused", []string{"0 1 +/l/" + l1, "10 2 +/l/n_0000000002", "30 2 -/l/n_0000000002", "3000 1 close"},
			[]string{l1 + " 0-3000 closed"}, nil, nil},
		{"readers share", []string{"0 1 +/l/read-0000000001", "1 2 +/l/read-0000000002", "2 3 +/l/write-0000000003", "3 4 +/l/read-0000000004", "5 1 close", "7 2 close", "9 3 close"},
			[]string{"read-0000000001 0-5 closed", "read-0000000002 1-7 closed", "write-0000000003 7-9 closed", "read-0000000004 9-? "}, nil, nil},
		{"a writer downgrades", []string{"0 1 +/l/write-0000000001", "1 2 +/l/read-0000000002", "2 3 +/l/write-0000000003", "5 1 =/l/write-0000000001=zkrecipes:~downgraded|", "7 1 close", "9 2 close"},
			[]string{"write-0000000001 0-7 closed", "read-0000000002 5-9 closed", "write-0000000003 9-? "}, nil, nil},
		{"a mark without its end is data", []string{"0 1 +/l/write-0000000001=zkrecipes:~downgraded", "1 2 +/l/read-0000000002"}, []string{"write-0000000001 0-? "}, nil, nil},
		{"a holder gives way by force", []string{"0 1 +/l/write-0000000001", "5 2 =/l/write-0000000001=unlock", "7 2 -/l/write-0000000001"},
			[]string{"write-0000000001 0-7 revoked"}, nil, []string{audit.Revoked}},
		{"a semaphore", []string{"0 1 */l=permits=2", "0 1 +/l/lease-0000000001", "1 2 +/l/lease-0000000002", "2 3 +/l/lease-0000000003", "9 2 close"},
			[]string{"lease-0000000002 1-9 closed", "lease-0000000001 0-? ", "lease-0000000003 9-? "}, nil, nil},
		{"a semaphore whose permits are written after the first have joined", []string{"0 1 */l", "0 1 +/l/lease-0000000001", "1 2 +/l/lease-0000000002", "2 3 +/l/lease-0000000003", "2 4 +/l/lease-0000000004", "3 1 =/l=permits=2", "9 1 close", "12 4 close"},
			[]string{"lease-0000000001 0-9 closed", "lease-0000000002 1-? ", "lease-0000000003 9-? "}, nil, nil},
		{"a semaphore whose permits are changed", []string{"0 1 */l=permits=2", "0 1 +/l/lease-0000000001", "1 2 +/l/lease-0000000002", "2 9 =/l=permits=1"},
			[]string{"lease-0000000001 0-? ", "lease-0000000002 1-? "}, []string{audit.TwoHolders}, nil},
		{"slots", []string{"0 1 */l=permits=2", "0 1 +/l/x-lease-0000000001=me", "1 2 +/l/y-lease-0000000002", "4 2 =/l=permits=2 =/l/y-lease-0000000002=zkrecipes:~slot=0|", "5 1 =/l=permits=2 =/l/x-lease-0000000001=zkrecipes:~slot=1|me", "9 1 -/l/x-lease-0000000001"},
			[]string{"x-lease-0000000001 0-9 released", "y-lease-0000000002 1-? "}, nil, nil},
		{"a release and a join are no claim", []string{"0 1 */l=permits=1", "0 1 +/l/x-lease-0000000001", "4 1 -/l/x-lease-0000000001 +/l/x-lease-0000000002"},
			[]string{"x-lease-0000000001 0-4 released", "x-lease-0000000002 4-? "}, nil, nil},
		{"kazoo's semaphore", []string{"0 1 */l=2", "0 1 +/l/" + kazoo1, "1 2 +/l/" + kazoo2, "2 3 +/l/" + kazoo3, "3 4 +/l/" + kazoo4, "4 1 close", "5 2 close", "6 3 close"},
			[]string{kazoo1 + " 0-4 closed", kazoo2 + " 1-5 closed", kazoo3 + " 2-6 closed", kazoo4 + " 3-? "}, []string{audit.TwoHolders}, nil},
		{"members of kazoo's barrier hold nothing", []string{"0 1 */l=x", "0 1 +/l/" + kazoo1, "1 2 +/l/" + l2, "2 1 -/l/" + kazoo1}, []string{l2 + " 1-? "}, nil, nil},
		{"Curator's semaphore", []string{"0 1 */l/leases", "0 1 +/l/leases/" + guid + "lease-0000000001", "1 2 +/l/leases/" + guid + "lease-0000000002"},
			[]string{guid + "lease-0000000001 0-? ", guid + "lease-0000000002 1-? "}, nil, nil},
		{"a priority lock", []string{
			"0 1 +/l/a-write-50-0000000001", "1 1 -/l/a-write-50-0000000001 +/l/a-writing-50-0000000001", "2 2 +/l/b-write-90-0000000002", "3 3 +/l/c-write-10-0000000003",
			"10 1 -/l/a-writing-50-0000000001", "14 3 -/l/c-write-10-0000000003 +/l/c-writing-10-0000000003", "20 3 close", "22 2 -/l/b-write-90-0000000002 +/l/b-writing-90-0000000002",
		}, []string{"a-writing-50-0000000001 1-10 released", "c-writing-10-0000000003 14-20 closed", "b-writing-90-0000000002 22-? "}, nil, nil},
		{"a writer of one waits for readers", []string{"0 1 +/l/a-reading-50-0000000001", "1 2 +/l/b-writing-50-0000000002", "5 1 close"},
			[]string{"a-reading-50-0000000001 0-5 closed", "b-writing-50-0000000002 5-? "}, nil, nil},
		{"only the session of a contender can claim for it", []string{"0 1 +/l/a-write-50-0000000001", "5 2 -/l/a-write-50-0000000001 +/l/a-writing-50-0000000001"},
			[]string{"a-writing-50-0000000001 5-? "}, nil, []string{audit.Removed}},
		{"two claim it", []string{"0 1 +/l/a-writing-50-0000000001", "1 2 +/l/b-writing-50-0000000002"},
			[]string{"a-writing-50-0000000001 0-? "}, []string{audit.TwoHolders}, nil},
		{"a number is written to the path of a lock", []string{"0 1 */l", "0 1 +/l/read-0000000001", "1 2 +/l/read-0000000002", "2 9 =/l=1"},
			[]string{"read-0000000001 0-? ", "read-0000000002 1-? "}, nil, nil},
		{"a persistent znode blocks", []string{"0 9 */l/" + l1, "1 1 +/l/" + l2, "5 9 -/l/" + l1},
			[]string{l2 + " 5-? "}, nil, []string{audit.Persistent}},
		{"an election of Curator, and other children", []string{"0 1 +/l/x-latch-0000000001", "1 2 +/l/x-latch-0000000002", "2 1 */l/guards-lock-9999999999", "2 1 +/l/member-1", "3 1 close"},
			[]string{"x-latch-0000000001 0-3 closed", "x-latch-0000000002 3-? "}, nil, nil},
		{"an acknowledgement of a leader is no candidate", []string{"0 1 +/l/x-n_0000000001", "1 1 +/l/acks/x-n_0000000001", "2 1 -/l/acks/x-n_0000000001"}, []string{"x-n_0000000001 0-? "}, nil, nil},
		{"a failed transaction changes nothing", []string{"0 1 +/l/" + l1, "1 1"}, []string{l1 + " 0-? "}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := from(0, tt.steps...)
			r, holds := auditOf(t, h, "/l")
			slices.Sort(tt.holds)
			got := shown(holds)
			slices.Sort(got)
			if !slices.Equal(got, tt.holds) {
				t.Errorf("holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.holds, "\n"))
			}
			if got := kinds(r.Violations); !slices.Equal(got, tt.violations) {
				t.Errorf("violations %+v, want %q", r.Violations, tt.violations)
			}
			if got := kinds(r.Events); !slices.Equal(got, tt.events) {
				t.Errorf("events %+v, want %q", r.Events, tt.events)
			}
			if len(r.Gaps) > 0 {
				t.Errorf("the logs are whole, and have the gaps %q", r.Gaps)
			}
		})
	}
}
