package audit_test

import (
	"bytes"
	"context"
	"errors"
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

// TestWhatTheFilesDoNotShow: the report names each gap, and nothing is concluded across it.
func TestWhatTheFilesDoNotShow(t *testing.T) {
	one := from(0, "0 1 */l", "0 1 +/l/"+l1, "10 2 +/l/"+l2).Bytes // zxids 1 to 3
	two := from(3, "50 1 close=/l/"+l1, "60 3 +/l/"+l3).Bytes      // 4 and 5
	late := from(4, "60 3 +/l/"+l3, "70 2 close=/l/"+l2).Bytes     // 5 and 6
	node := func(name string, session, zxid int64) txnlog.Node {
		return txnlog.Node{Path: []byte("/l/" + name), Czxid: zxid, Mzxid: zxid, Ctime: start + 10*(zxid-2), EphemeralOwner: session}
	}
	at3 := logtest.Snapshot(1, 1000, node(l1, 1, 2), node(l2, 2, 3))
	at4 := logtest.Snapshot(1, 1000, node(l2, 2, 3), node(l3, 3, 5)) // fuzzy: it has what a later transaction has created
	damaged := bytes.Clone(at3)
	damaged[len(damaged)-20] ^= 4
	epoch := from(1<<32, "60 3 +/l/"+l3, "70 2 close=/l/"+l2).Bytes
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		gaps  []string
		holds []string
	}{
		{"whole", map[string][]byte{"log.1": one, "log.4": two}, nil, []string{l1 + " 0-50 closed", l2 + " 50-? "}},
		{"a snapshot before", map[string][]byte{"log.4": two, "snapshot.3": at3}, nil, []string{l1 + " ?-50 closed", l2 + " 50-? "}},
		{"nothing before", map[string][]byte{"log.4": two}, []string{"no snapshot has the state before transaction 0x4", "1 contender left"}, []string{l3 + " 60-? "}},
		{"a log is missing", map[string][]byte{"log.1": one, "log.5": late}, []string{"no transactions from 0x4 to 0x4", "no snapshot", "1 contender left whose joining"},
			[]string{l1 + " 0-? unknown", l3 + " 70-? "}},
		{"but a snapshot has the state", map[string][]byte{"log.1": one, "log.5": late, "snapshot.4": at4}, []string{"no transactions from 0x4 to 0x4"},
			[]string{l1 + " 0-? unknown", l2 + " ?-70 closed", l3 + " 70-? "}},
		{"the first snapshot is later", map[string][]byte{"log.4": two, "log.6": from(5, "70 2 close").Bytes, "snapshot.4": at4}, []string{"from 0x4 to 0x4 were not checked"},
			[]string{l2 + " ?-70 closed", l3 + " 70-? "}},
		{"a torn snapshot", map[string][]byte{"log.4": two, "snapshot.3": at3[:len(at3)-20]}, []string{"snapshot.3: the last record is torn", "no snapshot", "1 contender left"}, []string{l3 + " 60-? "}},
		{"a damaged snapshot", map[string][]byte{"log.4": two, "snapshot.3": damaged}, []string{"snapshot.3: the record is corrupt", "no snapshot", "1 contender left"}, []string{l3 + " 60-? "}},
		{"a torn record", map[string][]byte{"log.1": one, "log.4": two[:len(two)-1]}, []string{"log.4: the last record is torn"}, []string{l1 + " 0-50 closed", l2 + " 50-? "}},
		{"a torn record in between", map[string][]byte{"log.1": one[:len(one)-1], "log.4": two}, []string{"log.1: the last record is torn", "no transactions from 0x3 to 0x3", "no snapshot", "1 contender left"},
			[]string{l1 + " 0-? unknown", l3 + " 60-? "}},
		{"another epoch", map[string][]byte{"log.1": one, "log.100000001": epoch}, nil, []string{l1 + " 0-? ", ""}},
		{"whose first transaction is missing", map[string][]byte{"log.1": one, "log.100000002": from(1<<32+1, "70 3 +/l/"+l3).Bytes}, []string{"no transactions from 0x4 to 0x100000001", "no snapshot"},
			[]string{l1 + " 0-? unknown", l3 + " 70-? "}},
		{"a snapshot without what was deleted while it was written", map[string][]byte{"log.4": two, "snapshot.3": logtest.Snapshot(1, 1000, node(l3, 3, 5))}, []string{"1 contender left"},
			[]string{l3 + " 60-? "}},
		{"whose leader sent a snapshot", map[string][]byte{"log.1": one, "log.100000001": epoch, "snapshot.9": at4}, []string{"no transactions from 0x4 to 0x100000000"},
			[]string{l1 + " 0-? unknown", l2 + " ?-70 closed", l3 + " 70-? "}},
		{"a follower logs again what another leader sends", map[string][]byte{"log.1": slices.Concat(one, two[16:], one[16:], two[16:])}, nil, []string{l1 + " 0-50 closed", l2 + " 50-? "}},
		{"but not all", map[string][]byte{"log.1": slices.Concat(one, two[16:], from(0, "0 1 */l", "0 1 +/l/"+l1).Bytes[16:], epoch[16:])},
			[]string{"from 0x3 to 0x5 may not have been committed"}, []string{l1 + " 0-50 closed", l2 + " 50-70 closed", l3 + " 70-? "}},
		{"an empty log", map[string][]byte{"log.1": one, "log.4": nil}, []string{"log.4 has no record"}, []string{l1 + " 0-? "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var holds []audit.Hold
			files := must.Get(txnlog.Find(write(t, tt.files)))(t)
			r, err := audit.Audit(t.Context(), files, audit.Config{Path: "/l", Hold: func(h audit.Hold) error { holds = append(holds, h); return nil }})
			must.Do(t, err)
			tt.holds = slices.DeleteFunc(tt.holds, func(h string) bool { return h == "" })
			if got := shown(holds); !slices.Equal(got, tt.holds) {
				t.Errorf("holds %q, want %q", got, tt.holds)
			}
			if len(r.Gaps) != len(tt.gaps) || len(r.Violations) > 0 {
				t.Fatalf("gaps %q, violations %+v", r.Gaps, r.Violations)
			}
			for i, gap := range tt.gaps {
				if !strings.Contains(r.Gaps[i], gap) {
					t.Errorf("gap %q, want %q", r.Gaps[i], gap)
				}
			}
		})
	}
}

// TestTheGrantsOfASnapshot: their times are unknown, so they are not counted, whatever ends them. A
// contender that a snapshot shows beside another one may have been refused.
func TestTheGrantsOfASnapshot(t *testing.T) {
	node := func(name string, session, zxid, ms int64) txnlog.Node {
		return txnlog.Node{Path: []byte("/l/" + name), Czxid: zxid, Mzxid: zxid, Ctime: start + ms, EphemeralOwner: session}
	}
	snapshot := logtest.Snapshot(1, 1000, node(l1, 1, 2, 0), node("n_0000000002", 2, 3, 9990))
	for last, want := range map[string][]string{"10000 2 close": nil, "20000 2 close": {"at 9.99s for 10.01s"}, "10100 2 expire": {"at 9.99s for 110ms"}} {
		files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.4": from(3, last).Bytes, "snapshot.3": snapshot})))(t)
		r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l"}))(t)
		var got []string
		for _, f := range r.Violations {
			_, length, _ := strings.Cut(f.Text, " held, ")
			length, _, _ = strings.Cut(length, ":")
			got = append(got, fmt.Sprintf("at %v %s", f.Time.Sub(time.UnixMilli(start)), length))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", last, got, want)
		}
		for _, l := range r.Lines {
			if l.Grants != 0 {
				t.Errorf("%s: %s has %d grants", last, l.Kind, l.Grants)
			}
		}
	}
}

// The owner field of a container, or of a znode with a time to live, is not a session.
func TestAContainerOfASnapshotBelongsToNoSession(t *testing.T) {
	for _, owner := range []int64{-1 << 63, -1<<56 | 1000} {
		snapshot := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/l/" + l1), Czxid: 2, EphemeralOwner: owner})
		files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.4": from(3, "10 2 +/l/"+l2).Bytes, "snapshot.3": snapshot})))(t)
		r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l"}))(t)
		if got := kinds(r.Events); !slices.Equal(got, []string{audit.Persistent}) || r.Lines[0].Holding != 0 {
			t.Errorf("owner %#x: events %q, %+v", uint64(owner), got, *r.Lines[0])
		}
	}
}

// TestManyGapsAreBounded: a log of holes does not fill the memory with sentences.
func TestManyGapsAreBounded(t *testing.T) {
	h := from(0, "0 1 +/l/"+l1)
	for range 200 {
		h.Zxid++
		h.step(1, 1, "=/l")
	}
	if r, _ := auditOf(t, h, "/l"); len(r.Gaps) != 101 || r.Gaps[100] != "there are more gaps" {
		t.Errorf("%d gaps, and at last %q", len(r.Gaps), r.Gaps[len(r.Gaps)-1])
	}
}

// TestBadInputIsRefused: the error names the file and what is wrong.
func TestBadInputIsRefused(t *testing.T) {
	good := from(0, "0 1 +/l/"+l1).Bytes
	for _, tt := range []struct {
		files map[string][]byte
		path  string
		want  string
	}{
		{map[string][]byte{"log.1": []byte("clientPort=2181 and so on")}, "/l", "log.1: not a transaction log or snapshot of ZooKeeper: it begins with"},
		{map[string][]byte{"log.1": good[:9]}, "/l", "log.1: not a transaction log or snapshot of ZooKeeper: it is shorter"},
		{map[string][]byte{"log.1": good, "snapshot.x": logtest.Snapshot(1, 1)}, "/l", "snapshot.x: a snapshot must have its original name"},
		{map[string][]byte{"myid": []byte("1")}, "/l", "there is no transaction log"},
		{map[string][]byte{"log.1": good, "log.2": from(0, "1 1 +/l/"+l1).Bytes}, "/l", "there are two transactions 0x1: give the logs of one server only"},
		{map[string][]byte{"log.1": good}, "/m", "no wait queue, queue or decision is at or below /m"},
	} {
		files, err := txnlog.Find(write(t, tt.files))
		if err == nil {
			_, err = audit.Audit(t.Context(), files, audit.Config{Path: tt.path})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v; want %q", err, tt.want)
		}
	}
	if _, err := txnlog.Find(filepath.Join(t.TempDir(), "log.1")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestADataDirIsFound: a directory by its version-2, single files by their names.
func TestADataDirIsFound(t *testing.T) {
	dir := t.TempDir()
	version2 := filepath.Join(dir, "version-2")
	must.Do(t, os.Mkdir(version2, 0o755))
	log := filepath.Join(version2, "log.1")
	must.Do(t, os.WriteFile(log, from(0, "0 1 +/l/"+l1).Bytes, 0o644))
	must.Do(t, os.WriteFile(filepath.Join(version2, "acceptedEpoch"), []byte("1"), 0o644))
	for _, name := range []string{dir, version2, log} {
		files := must.Get(txnlog.Find(name))(t)
		if r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/"}))(t); len(r.Lines) != 1 || r.Lines[0].Grants != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.Audit(ctx, must.Get(txnlog.Find(dir))(t), audit.Config{Path: "/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("an audit that was cancelled: %v", err)
	}
}

// TestTheProgressIsThatOfAllLogs: it counts bytes, including the zeros at the ends of the logs.
func TestTheProgressIsThatOfAllLogs(t *testing.T) {
	zeros := make([]byte, 100)
	one, two := from(0, "0 1 */l", "0 1 +/l/"+l1).Bytes, from(2, "10 2 +/l/"+l2).Bytes
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": slices.Concat(one, zeros), "log.3": slices.Concat(two, zeros)})))(t)
	var got []int64
	must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l", Progress: func(read, total int64) {
		if total != files.Bytes {
			t.Errorf("%d bytes in all; the files have %d", total, files.Bytes)
		}
		got = append(got, read)
	}}))(t)
	first := int64(len(one) + len(zeros))
	if want := []int64{int64(len(one)), first, first + int64(len(two)), files.Bytes}; len(got) != 5 || !slices.Equal(got[1:], want) {
		t.Errorf("%d; want the end of the first record and %d", got, want)
	}
}

// TestTheFiguresOfALine: the report says how long contenders waited and held, and how the holds
// ended.
func TestTheFiguresOfALine(t *testing.T) {
	h := from(0, "0 1 +/l/"+l1, "10 2 +/l/"+l2, "20 3 +/l/"+l3, "30 4 +/l/lock-0000000004",
		"100 1 =/l/"+l1+" -/l/"+l1, "200 3 -/l/"+l3, "300 2 expire", "400 9 -/l/lock-0000000004",
		"500 1 +/l/lock-0000000005", "600 2 +/l/lock-0000000006")
	r, _ := auditOf(t, h, "/l")
	l := r.Lines[0]
	if l.Contenders != 6 || l.Grants != 4 || l.Most != 1 || l.Wait.Count() != 2 || l.Wait.Quantile(0.5) != 90*time.Millisecond || l.Wait.Quantile(1) != 270*time.Millisecond ||
		l.Hold.Count() != 3 || l.Hold.Quantile(1) != 200*time.Millisecond || l.Ended["handoff"] != 1 || l.Ended[audit.Expired] != 1 || l.Ended[audit.Broken] != 1 || l.Passed != 2 ||
		l.Left != 1 || l.InVain.Quantile(1) != 180*time.Millisecond || l.Waiting != 1 || l.Holding != 1 || l.Gap.Count() != 0 {
		t.Errorf("%+v", *l)
	}
	snapshot := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/l/" + l1), Czxid: 3, EphemeralOwner: 1}, txnlog.Node{Path: []byte("/l/" + l2), Czxid: 4, Ctime: start, EphemeralOwner: 2})
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"snapshot.5": snapshot, "log.6": from(5, "50 1 close", "70 2 close").Bytes})))(t)
	r = must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l"}))(t)
	if l := r.Lines[0]; l.Grants != 1 || l.Wait.Quantile(1) != 50*time.Millisecond || l.Hold.Count() != 1 || l.Hold.Quantile(1) != 20*time.Millisecond {
		t.Errorf("%+v", *l)
	}
	r, _ = auditOf(t, from(0, "0 9 */l=permits=1", "0 1 +/l/x-lease-0000000001", "4 1 =/l=permits=1 =/l/x-lease-0000000001=zkrecipes:~slot=0|"), "/l")
	if l := r.Lines[0]; l.Grants != 1 || l.Contenders != 1 || l.Wait.Count() != 0 {
		t.Errorf("%+v", *l)
	}
	r, _ = auditOf(t, from(0, "0 9 */l/"+l1, "0 2 +/l/"+l2, "5 9 -/l/"+l1), "/l")
	if l := r.Lines[0]; l.Wait.Count() != 1 || l.Passed != 0 {
		t.Errorf("%+v", *l)
	}
	r, _ = auditOf(t, from(0, "0 1 +/l/a-writing-50-0000000001", "1 2 +/l/b-write-50-0000000002", "2 3 +/l/c-write-50-0000000003",
		"10 1 close", "14 2 -/l/b-write-50-0000000002 +/l/b-writing-50-0000000002"), "/l")
	if l := r.Lines[0]; l.Grants != 2 || l.Overtaken != 0 {
		t.Errorf("%+v", *l)
	}
	r, _ = auditOf(t, from(0, "0 1 +/l/x__lock__0000000001", "1 2 +/l/x__rlock__0000000002", "2 3 +/m/x__lock__0000000001", "3 3 +/n/x-reading-50-0000000001"), "/")
	if r.Lines[0].Kind != "shared-lock" || r.Lines[1].Kind != "lock" || r.Lines[2].Kind != "priority-lock" {
		t.Errorf("%+v, %+v, %+v", *r.Lines[0], *r.Lines[1], *r.Lines[2])
	}
	claims := from(0, "0 1 +/l/a-writing-50-0000000001", "1 2 +/l/b-write-90-0000000002", "2 3 +/l/c-write-10-0000000003",
		"10 1 close", "14 3 -/l/c-write-10-0000000003 +/l/c-writing-10-0000000003", "20 4 +/l/d-write-00-0000000004", "30 3 -/l/c-writing-10-0000000003 =/l=successor",
		"33 4 -/l/d-write-00-0000000004 +/l/d-writing-00-0000000004")
	r, _ = auditOf(t, claims, "/l")
	if l := r.Lines[0]; l.Gap.Count() != 2 || l.Gap.Quantile(1) != 4*time.Millisecond || l.Overtaken != 2 || l.Wait.Quantile(1) != 13*time.Millisecond || l.Waiting != 1 || l.Contenders != 4 || l.Left != 0 {
		t.Errorf("%+v", *l)
	}
}

// TestTheWritesOfTheApplication: a write is late if it came after the end of its token's hold.
func TestTheWritesOfTheApplication(t *testing.T) {
	h := from(6, "0 1 +/l/"+l1, "0 2 +/l/"+l2, "100 1 expire") // tokens 7 and 8
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.7": h.Bytes})))(t)
	write := func(ms int, token int64) audit.Write {
		return audit.Write{Time: time.UnixMilli(start + int64(ms)), Token: token}
	}
	r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l", Writes: []audit.Write{
		write(50, 7), write(100, 7), write(130, 7), write(99, 8), write(100, 8), write(200, 8), write(1, 5),
	}}))(t)
	if want := (audit.Checks{Writes: 7, Held: 4, Early: 1, Late: 1, Unknown: 1}); *r.Writes != want {
		t.Errorf("%+v", *r.Writes)
	}
	if got := kinds(r.Violations); !slices.Equal(got, []string{audit.LateWrite}) || !strings.Contains(r.Violations[0].Text, "30ms after the hold of session 0x1 had ended (expired)") {
		t.Errorf("%+v", r.Violations)
	}
}

// TestWhoWroteWasNotRefused: a contender that leaves soon, but has written with its token, has held.
func TestWhoWroteWasNotRefused(t *testing.T) {
	h := from(0, "0 1 +/l/"+l1, "10 2 +/l/n_0000000002", "910 2 close")
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": h.Bytes})))(t)
	r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/l", Writes: []audit.Write{{Time: time.UnixMilli(start + 10_000), Token: 2}}}))(t)
	if got := kinds(r.Violations); !slices.Equal(got, []string{audit.Beside, audit.LateWrite}) || r.Writes.Late != 1 || r.Lines[1].Refused != 0 {
		t.Errorf("%+v, writes %+v, line %+v", r.Violations, *r.Writes, *r.Lines[1])
	}
}

// TestAnOverlapIsAsLongAsBothHeld: it is reported at its beginning.
func TestAnOverlapIsAsLongAsBothHeld(t *testing.T) {
	r, _ := auditOf(t, from(0, "0 1 +/l/"+l1, "10 2 +/l/n_0000000002", "500 1 close", "3000 2 close"), "/l")
	if len(r.Violations) != 1 || r.Violations[0].Zxid != 2 || !strings.Contains(r.Violations[0].Text, "for 490ms") {
		t.Errorf("%+v", r.Violations)
	}
}

// TestOnlyThePathIsAudited: lines beside it and names that begin like it do not count.
func TestOnlyThePathIsAudited(t *testing.T) {
	h := from(0, "0 1 +/a/l/"+l1, "0 1 +/a/m/"+l1, "0 1 +/ab/"+l1, "0 1 +/"+l1)
	for path, want := range map[string]int{"/a": 2, "/a/l": 1, "/ab": 1, "/": 4} {
		if r, _ := auditOf(t, h, path); len(r.Lines) != want {
			t.Errorf("%s has %d lines, want %d", path, len(r.Lines), want)
		}
	}
}

// TestQuantiles: the quantiles of long durations are exact to a thousandth.
func TestQuantiles(t *testing.T) {
	var d audit.Durations
	for i := range int64(10_001) {
		d.Add(i * 100)
	}
	d.Add(-5) // the clock was set back
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 500 * time.Second, 0.99: 990 * time.Second, 1: 1000 * time.Second} {
		if got := d.Quantile(q); got > want || got < want-want/500 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if b := must.Get(d.MarshalJSON())(t); !bytes.Contains(b, []byte(`"count":10002`)) {
		t.Errorf("%s", b)
	}
}

// TestAReconfigurationIsNoTurn: real servers were reconfigured between two turns of a lock.
func TestAReconfigurationIsNoTurn(t *testing.T) {
	folders := must.Get(filepath.Glob(filepath.Join("..", "txnlog", "testdata", "*-reconfig")))(t)
	if len(folders) != 2 {
		t.Fatalf("the folders are %q", folders)
	}
	for _, folder := range folders {
		r := must.Get(audit.Audit(t.Context(), must.Get(txnlog.Find(folder))(t), audit.Config{Path: "/"}))(t)
		if len(r.Lines) != 1 || r.Lines[0].Grants != 2 || r.Transactions != 7 || len(r.Gaps)+len(r.Violations)+len(r.Events) > 0 {
			t.Errorf("%s: %+v", folder, r)
		}
	}
}
