package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// TestANegativeZxidEndsALog: the report has a gap, and what was before it is audited.
func TestANegativeZxidEndsALog(t *testing.T) {
	h := from(0, "0 1 +/l/"+l1)
	h.Record(txnlog.Header{Type: txnlog.SetData, Zxid: math.MinInt64 + 7}, []byte{0, 0, 0, 1, '/', 0, 0, 0, 0})
	if r, _ := auditOf(t, h, "/l"); len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0], "0x8000000000000007 is negative") || r.Lines[0].Grants != 1 {
		t.Errorf("gaps %q, lines %+v", r.Gaps, r.Lines)
	}
}

// TestAClockThatIsWrong: every report can be written, and names the transaction. The order is that
// of the zxids, so the grants are audited.
func TestAClockThatIsWrong(t *testing.T) {
	for ms, want := range map[int64]string{math.MaxInt64: "9999-12-31T23:59:59.999Z", 253_402_300_800_000: "9999-12-31T23:59:59.999Z", -1: "1970-01-01T00:00:00.000Z", math.MinInt64: "1970-01-01T00:00:00.000Z"} {
		for _, snapshot := range []bool{false, true} {
			h := from(map[bool]int64{false: 0, true: 3}[snapshot], "0 1 +/l/"+l1, "5 2 +/l/"+l2)
			h.step(int(ms-start), 1, "close")
			h.step(100, 2, "close")
			files := map[string][]byte{"log.1": h.Bytes}
			if snapshot { // the grant was before the logs
				files["snapshot.3"] = logtest.Snapshot(9, 1000, txnlog.Node{Path: []byte("/l/lock-0000000000"), Czxid: 3, Ctime: ms, EphemeralOwner: 2})
			}
			var timeline audit.Timeline
			var holds []audit.Hold
			found := must.Get(txnlog.Find(write(t, files)))(t)
			r := must.Get(audit.Audit(t.Context(), found, audit.Config{Path: "/l", Hold: func(h audit.Hold) error {
				timeline.Add(h)
				holds = append(holds, h)
				return nil
			}}))(t)
			must.Get(json.Marshal(r))(t)
			must.Get(json.Marshal(holds))(t)
			must.Do(t, timeline.WriteHTML(new(bytes.Buffer), r))
			if len(holds) != map[bool]int{false: 2, true: 1}[snapshot] || len(r.Gaps) != map[bool]int{false: 1, true: 2}[snapshot] || !strings.Contains(strings.Join(r.Gaps, "\n"), want) {
				t.Errorf("%d, snapshot %t: %d holds, gaps %q; want %s", ms, snapshot, len(holds), r.Gaps, want)
			}
		}
	}
}

// TestLongDurations: durations of more than 292 years are not negative.
func TestLongDurations(t *testing.T) {
	h := from(0, "0 1 +/l/"+l1, "1 2 +/l/"+l2)
	h.step(math.MaxInt64-start, 1, "expire")
	r, _ := auditOf(t, h, "/l")
	text := string(must.Get(json.Marshal(r))(t))
	if l := r.Lines[0]; l.Hold.Quantile(1) != math.MaxInt64 || l.Hold.Quantile(0.5) < 292*365*24*time.Hour {
		t.Errorf("the hold was %v, at the median %v", l.Hold.Quantile(1), l.Hold.Quantile(0.5))
	}
	if strings.Contains(text, "-") && strings.Contains(r.Events[0].Text, "for -") || !strings.Contains(text, `"max_ms":251702300799999`) {
		t.Errorf("%s", text)
	}
}

// TestATimelineOfAnyLengthEnds: a hold that ends before its grant is visible.
func TestATimelineOfAnyLengthEnds(t *testing.T) {
	var timeline audit.Timeline
	for _, ms := range []int64{0, math.MaxInt64} {
		timeline.Add(audit.Hold{Line: "/l", Kind: "lock", Znode: "x", Granted: time.UnixMilli(10), Ended: time.UnixMilli(ms), EndedBy: "released"})
	}
	var page bytes.Buffer
	must.Do(t, timeline.WriteHTML(&page, &audit.Report{To: audit.Moment{Time: time.UnixMilli(20)}, Lines: []*audit.Line{{Path: "/l", Kind: "lock", Most: 1}}}))
	if !strings.Contains(page.String(), `<rect x="0"`) {
		t.Error(page.String())
	}
}

// allocated returns how many bytes the audit of a snapshot with these znodes allocates in all. It
// also counts what was freed, so it bounds the memory in use, and does not depend on the
// collector.
func allocated(t *testing.T, nodes []txnlog.Node) uint64 {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("snapshot.%x", len(nodes))), logtest.Snapshot(1, 1000, nodes...), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, "log.1"), from(int64(len(nodes)), "0 1 +/l/"+l1).Bytes, 0o644))
	files := must.Get(txnlog.Find(dir))(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/"}))(t)
	runtime.ReadMemStats(&after)
	if len(r.Gaps) > 0 {
		t.Errorf("gaps %q", r.Gaps)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryDoesNotGrowWithASnapshot: it grows neither with the number of other znodes nor with
// their data.
func TestMemoryDoesNotGrowWithASnapshot(t *testing.T) {
	make := func(n, size int, path string) (all []txnlog.Node) {
		data := bytes.Repeat([]byte("x"), size)
		for i := range n {
			all = append(all, txnlog.Node{Path: fmt.Appendf(nil, path, i), Data: data, Czxid: int64(i + 1), EphemeralOwner: 1})
		}
		return all
	}
	const many, large = 100_000, 256 << 10
	few := allocated(t, make(100, 0, "/app/znode%08d"))
	if more := allocated(t, make(many, 100, "/app/znode%08d")); more > few+64*many {
		t.Errorf("%d other znodes: %d bytes more, which is %d for each", many, more-few, (more-few)/many)
	}
	for _, path := range []string{"/app/znode%08d", "/l/lock-%010d", "/q/queue-%010d", "/q/claims/queue-0000000000-%d", "/t%d/decision"} {
		small, big := allocated(t, make(100, 10, path)), allocated(t, make(100, large, path))
		if big > small+100*large/10 {
			t.Errorf("%s: 100 znodes with %d bytes of data: %d bytes, and with 10 %d", path, large, big, small)
		}
	}
}
