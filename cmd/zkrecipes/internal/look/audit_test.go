package look

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/audit"
)

// runAudit runs the verb, and returns its output and exit code.
func runAudit(args ...string) (stdout, stderr string, code int) {
	var out, err strings.Builder
	c := &verb.Command{Tool: verb.NewTool(&out, &err), Verb: auditing, Action: auditing.New()}
	code = c.Run(append([]string{"--"}, args...))
	return out.String(), err.String(), code
}

// TestAuditTellsBadInputFromViolations: the exit codes differ, and one line says what is wrong.
func TestAuditTellsBadInputFromViolations(t *testing.T) {
	const logs = "../../../../testdata/audit"
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "writes.jsonl")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, tt := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"/ordinary", logs}, 0, "\nviolations: 0\n", ""},
		{[]string{"/broken", logs}, 1, " /broken broken: session 0x", ""},
		{[]string{"-holds", "/ordinary", logs}, 0, "/ordinary lock-0000000001 0x10000dd643e0001 token 6 from 2026-11-26T02:26:38.722Z to 2026-11-26T02:26:38.724Z handoff", ""},
		{[]string{"-writes", write(`{"time":"2026-11-26T02:26:50Z","token":21}`), "/expired", logs}, 1, "1 write: 0 while the token's hold stood, 1 after its end", ""},
		{[]string{"-writes", write(`{"time":"2026-11-26T02:26:39.2Z","token":21}` + "\n\n"), "/expired", logs}, 0, "1 write: 1 while", ""},
		{[]string{"-writes", write("\n" + `{"time":"yesterday"}`), "/expired", logs}, 2, "", "writes.jsonl:2: not a write such as"},
		{[]string{"/none", logs}, 2, "", "no wait queue, queue or decision is at or below /none"},
		{[]string{"/ordinary", "audit_test.go"}, 2, "", "audit_test.go: not a transaction log or snapshot of ZooKeeper: it begins with"},
		{[]string{"/ordinary", "missing"}, 2, "", "missing: no such file"},
		{[]string{"/ordinary"}, 2, "", "give PATH, and then the transaction logs"},
		{[]string{"ordinary", logs}, 2, "", "ordinary"},
	} {
		stdout, stderr, code := runAudit(tt.args...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || tt.stderr != "" && (stdout != "" || strings.Count(stderr, "\n") != 1) {
			t.Errorf("%q: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	stdout, _, code := runAudit("-format=json", "-html", page, "/", logs)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), `class="broken"`) {
		t.Errorf("%v: %s", err, html)
	}
	var r audit.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 || len(r.Lines) != 5 || len(r.Violations) != 2 || len(r.Events) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}
