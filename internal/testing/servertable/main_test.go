package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const contract = `{"Action":"run","Test":"TestContract/direct/real/contract/shared_lock"}
{"Action":"run","Test":"TestContract/direct/real/contract/shared_lock/a_reader"}
{"Action":"pass","Test":"TestContract/direct/real/contract/shared_lock/a_reader"}
{"Action":"run","Test":"TestContract/plugin/real/contract/shared_lock/a_reader"}
{"Action":"skip","Test":"TestContract/plugin/real/contract/shared_lock/a_reader"}
{"Action":"pass","Test":"TestContract/direct/real/contract/shared_lock"}
{"Action":"run","Test":"TestContract/direct/real/contract/lock/one"}
{"Action":"pass","Test":"TestContract/direct/real/contract/lock/one"}
{"Action":"run","Test":"TestContract/direct/real/contract/lock/it_hangs"}
{"Action":"output","Output":"panic: test timed out"}
{"Action":"fail","Package":"x"}
a line of the build
`

func TestTheTable(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("page.md", "before\n"+begin+"old\n"+end+"after\n")
	write("zookeeper-3.4.13/contract.json", contract)
	write("zookeeper-3.8.0/contract.json", `{"Action":"pass","Test":"TestContract/direct/real/contract/lock/one"}`)
	write("zookeeper-3.8.0/conformance.json", `{"Action":"pass","Test":"TestConformance/real"}`)
	page := filepath.Join(dir, "page.md")
	must.Do(t, run(page, []string{filepath.Join(dir, "zookeeper-3.4.13"), filepath.Join(dir, "zookeeper-3.8.0")}))
	const want = "before\n" + begin + `| | 3.4.13 | 3.8.0 |
|---|---|---|
| contract: lock | **1 failed** of 2 | 1 |
| contract: shared lock | 1 of 2 | not tested |
| conformance | not tested | 1 |
| faults | not tested | not tested |
| partition | not tested | not tested |

Skipped on 3.4.13:

- a reader (1 tests)
` + end + "after\n"
	if got := string(must.Get(os.ReadFile(page))(t)); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}

func TestAPageWithoutMarkersIsNotWritten(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	must.Do(t, os.WriteFile(page, []byte("a page\n"), 0o600))
	if err := run(page, nil); err == nil || !strings.Contains(err.Error(), "has no lines") {
		t.Errorf("%v; want an error that names the markers", err)
	}
}
