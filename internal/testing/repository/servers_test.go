package repository_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

var (
	serverResults = flag.String("servers", "", "`folders` of results of .ci/test-servers, separated by spaces: write their table into docs/servers.md")
	keeperResults = flag.String("keepers", "", "the same for the results of .ci/suite keeper")
)

const (
	serversPage = "docs/servers.md"
	serversEnd  = "<!-- end of the table -->\n"
)

// kinds are the kinds of tests besides the contract, in the order of the table.
var kinds = []string{"conformance", "faults", "partition"}

// count holds how many tests ended in each way.
type count map[string]int

func (c count) String() string {
	switch all := c["pass"] + c["skip"] + c["fail"]; {
	case all == 0:
		return "not tested"
	case c["fail"] > 0:
		return fmt.Sprintf("**%d failed** of %d", c["fail"], all)
	case c["skip"] > 0:
		return fmt.Sprintf("%d of %d", c["pass"], all)
	}
	return fmt.Sprint(c["pass"])
}

// tested holds the results on one version of ZooKeeper.
type tested struct {
	Version string
	Rows    map[string]count
	Skipped count // tests of the contract, by their last element
}

var serversTable = template.Must(template.New("").Parse(
	`| |{{range .Versions}} {{.Version}} |{{end}}
|---|{{range .Versions}}---|{{end}}
{{range $row := .Rows}}| {{$row}} |{{range $.Versions}} {{index .Rows $row}} |{{end}}
{{end}}{{range .Versions}}{{if .Skipped}}
Skipped on {{.Version}}:

{{range $name, $n := .Skipped}}- {{$name}} ({{$n}} tests)
{{end}}{{end}}{{end}}`))

// The folder of each version is named after it, such as zookeeper-3.8.0. It has the output of
// go test -json: contract.json, and a file for each other kind of test that was run.
func tableOf(t *testing.T, folders, kinds []string) string {
	t.Helper()
	var data struct {
		Versions []tested
		Rows     []string
	}
	contract := map[string]bool{}
	for _, folder := range folders {
		v := tested{strings.TrimPrefix(filepath.Base(folder), "zookeeper-"), map[string]count{}, count{}}
		for name, action := range endings(t, filepath.Join(folder, "contract.json")) {
			_, rest, ok := strings.Cut(name, "/contract/") // TestContract/direct/real/contract/GROUP/...
			group, _, _ := strings.Cut(rest, "/")
			if !ok {
				group = name // the package ended before its first test
			}
			v.add("contract: "+strings.ReplaceAll(group, "_", " "), action)
			contract["contract: "+strings.ReplaceAll(group, "_", " ")] = true
			if action == "skip" && kinds != nil { // those of Keeper are a file of their own
				v.Skipped[strings.ReplaceAll(name[strings.LastIndex(name, "/")+1:], "_", " ")]++
			}
		}
		for _, kind := range kinds {
			file := filepath.Join(folder, kind+".json")
			if _, err := os.Stat(file); err == nil {
				for _, action := range endings(t, file) {
					v.add(kind, action)
				}
			}
		}
		data.Versions = append(data.Versions, v)
	}
	data.Rows = append(slices.Sorted(maps.Keys(contract)), kinds...)
	var b strings.Builder
	must.Do(t, serversTable.Execute(&b, data))
	return b.String()
}

func (v tested) add(row, action string) {
	if v.Rows[row] == nil {
		v.Rows[row] = count{}
	}
	v.Rows[row][action]++
}

// endings returns how each test without subtests ended. A test that has not ended has failed.
func endings(t *testing.T, file string) map[string]string {
	t.Helper()
	ended := map[string]string{}
	for line := range bytes.Lines(must.Get(os.ReadFile(file))(t)) {
		var event struct{ Action, Test string }
		if json.Unmarshal(line, &event) != nil || event.Test == "" {
			continue // output of the build, or an event of a package
		}
		switch event.Action {
		case "run":
			ended[event.Test] = "fail"
		case "pass", "skip", "fail":
			ended[event.Test] = event.Action
		}
	}
	for _, name := range slices.Collect(maps.Keys(ended)) {
		for at, c := range name {
			if c == '/' {
				delete(ended, name[:at])
			}
		}
	}
	return ended
}

const contractResults = `{"Action":"run","Test":"TestContract/direct/real/contract/shared_lock"}
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

// TestTheTableOfServers checks how results become a table. With -servers it also writes the table
// of docs/servers.md.
func TestTheTableOfServers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("zookeeper-3.4.13/contract.json", contractResults)
	write("zookeeper-3.8.0/contract.json", `{"Action":"pass","Test":"TestContract/direct/real/contract/lock/one"}`)
	write("zookeeper-3.8.0/conformance.json", `{"Action":"pass","Test":"TestConformance/real"}`)
	const want = `| | 3.4.13 | 3.8.0 |
|---|---|---|
| contract: lock | **1 failed** of 2 | 1 |
| contract: shared lock | 1 of 2 | not tested |
| conformance | not tested | 1 |
| faults | not tested | not tested |
| partition | not tested | not tested |

Skipped on 3.4.13:

- a reader (1 tests)
`
	if got := tableOf(t, []string{filepath.Join(dir, "zookeeper-3.4.13"), filepath.Join(dir, "zookeeper-3.8.0")}, kinds); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	writeTable(t, "<!-- table: .ci/suite servers -->\n", *serverResults, kinds)
	writeTable(t, "<!-- table: .ci/suite keeper -->\n", *keeperResults, nil)
}

// writeTable writes the table behind the line begin, if there are results.
func writeTable(t *testing.T, begin, results string, kinds []string) {
	t.Helper()
	page := string(must.Get(os.ReadFile(serversPage))(t))
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, serversEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", serversPage, begin, serversEnd)
	}
	if results != "" {
		page = before + begin + tableOf(t, strings.Fields(results), kinds) + serversEnd + after
		must.Do(t, os.WriteFile(serversPage, []byte(page), 0o644))
	}
}
