package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// TestTheTimelineOfALine: a page shows when it was held, and when a session expired or a hold was
// broken, on any scale.
func TestTheTimelineOfALine(t *testing.T) {
	for _, scale := range []struct{ unit, pixel int }{{1, 1}, {10, 16}} { // milliseconds
		steps := []string{"0 1 +/<l/" + l1}
		for i, s := range []string{"1 close", "2 +/<l/" + l2, "2 expire", "3 +/<l/" + l3, "9 -/<l/" + l3, "4 +/<l/lock-0000000004", "9 */other"} {
			steps = append(steps, fmt.Sprint((i+1)*128*scale.unit, " ", s))
		}
		var timeline audit.Timeline
		files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": from(0, steps...).Bytes})))(t)
		r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/", Hold: func(h audit.Hold) error { timeline.Add(h); return nil }}))(t)
		var page bytes.Buffer
		must.Do(t, timeline.WriteHTML(&page, r))
		x := func(ms int) int { return ms * scale.unit / scale.pixel }
		for _, want := range []string{
			fmt.Sprintf(`<rect x="0" width="%d" height="16" class="s8"/>`, x(128)),
			fmt.Sprintf(`<rect x="%d" width="2" height="16" class="expired"/>`, x(384)),
			fmt.Sprintf(`<rect x="%d" width="2" height="16" class="broken"/>`, x(640)),
			"<title>" + l1 + ", session 0x1, token 1, held for " + (time.Duration(128*scale.unit) * time.Millisecond).String() + " </title>",
			fmt.Sprintf(`viewBox="0 0 %d 16"`, x(896)+1), `<text x="1024" y="12" text-anchor="end">22:13:2`,
			"/&lt;l<td>lock, zookeeper<td>4<td>0<td>", "Violations: 1. Events: 1.",
		} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page has no %s:\n%s", want, page.String())
			}
		}
		if strings.Contains(page.String(), ">several holders<") {
			t.Error("a bar names several holders")
		}
		if n := strings.Count(page.String(), "<rect"); n > 16 {
			t.Errorf("%d parts of a strip", n)
		}
	}
}

// TestTwoLibrariesHaveTwoStrips: they have two even at one path. A line that gets readers keeps its
// strip.
func TestTwoLibrariesHaveTwoStrips(t *testing.T) {
	const kazoo1, kazoo2 = "0f8fad5bd9cb469fa16570867728950e__lock__0000000001", "1f8fad5bd9cb469fa16570867728950e__rlock__0000000002"
	h := from(0, "0 1 +/l/"+kazoo1, "100 1 close", "200 2 +/l/"+kazoo2, "300 2 close", "400 3 +/l/"+l3, "500 3 close")
	var timeline audit.Timeline
	files := must.Get(txnlog.Find(write(t, map[string][]byte{"log.1": h.Bytes})))(t)
	r := must.Get(audit.Audit(t.Context(), files, audit.Config{Path: "/", Hold: func(h audit.Hold) error { timeline.Add(h); return nil }}))(t)
	var page bytes.Buffer
	must.Do(t, timeline.WriteHTML(&page, r))
	rows := strings.Split(page.String(), "<tr><td>/l<td>")[1:]
	for i, want := range []string{"lock, zookeeper " + l3, "shared-lock, kazoo " + kazoo1 + " " + kazoo2} {
		got, _, _ := strings.Cut(rows[i], "<td>")
		for _, title := range strings.Split(rows[i], "<title>")[1:] {
			if znode, _, _ := strings.Cut(title, ","); !strings.HasSuffix(got, znode) { // this is another bar of the same hold
				got += " " + znode
			}
		}
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// TestShortHoldsAreVisible: even those of two holders in one step are. The precision of times
// follows the length of the page.
func TestShortHoldsAreVisible(t *testing.T) {
	for length, tick := range map[time.Duration]string{time.Minute / 2: "00:00:30.01", time.Hour: "01:00:00<", 48 * time.Hour: "1970-01-03 00:03<"} {
		var timeline audit.Timeline
		moment := func(after time.Duration) time.Time { return time.UnixMilli(after.Milliseconds()).UTC() }
		for i, at := range []time.Duration{0, length / 2, length/2 + 1, length} {
			timeline.Add(audit.Hold{Line: "/l", Kind: "lock", Znode: fmt.Sprint("lock-", i), Granted: moment(at), Ended: moment(at), EndedBy: "released"})
		}
		var page bytes.Buffer
		must.Do(t, timeline.WriteHTML(&page, &audit.Report{To: audit.Moment{Time: moment(length)}, Lines: []*audit.Line{{Path: "/l", Kind: "lock", Most: 1}}}))
		if n := strings.Count(page.String(), `class="s1"/>`); n != 3 || !strings.Contains(page.String(), tick) || strings.Count(page.String(), "<title>lock-") != 2 {
			t.Errorf("%v: %d bars, want 3:\n%s", length, n, page.String())
		}
	}
}
