package audit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
			"/&lt;l<td>lock, zookeeper<td>4<td>0<td>", "Violations: 1. Events: 1.",
		} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page has no %s:\n%s", want, page.String())
			}
		}
		if n := strings.Count(page.String(), "<rect"); n > 16 {
			t.Errorf("%d parts of a strip", n)
		}
	}
}
