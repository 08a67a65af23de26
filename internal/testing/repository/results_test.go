package repository_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestResults checks that the pages show the figures of testdata/results, the recording of make
// results. With -update it writes them. A page has two comments around each, the first of which
// says what is shown. Such a comment is not the first of a line, where the rest of the line would be HTML:
//
//	<!-- results: rate 1 cycle 100 handoff -->1600<!-- end -->
//
// Tables and other paragraphs have lines of their own between the comments.
func TestResults(t *testing.T) {
	r := readResults(t)
	for _, page := range []string{"README.md", "docs/benchmark.md", "docs/capacity.md", "docs/recipes.md", "docs/guarantees.md", "docs/interop.md", "plugin/proto/PROTOCOL.md"} {
		content := must.Get(os.ReadFile(page))(t)
		shown := 0
		made := result.ReplaceAllFunc(content, func(old []byte) []byte {
			shown++
			part := result.FindSubmatch(old)
			text, err := r.make(strings.Fields(string(part[1])))
			if err != nil {
				t.Errorf("%s: %q: %v", page, part[1], err)
				return old
			}
			if strings.Contains(text, "\n") {
				text = "\n\n" + text
			} else if bytes.Contains(content, append([]byte("\n"), old...)) {
				t.Errorf("%s: %q begins a line", page, part[1])
			}
			if text != string(part[2]) && !*update {
				t.Errorf("%s shows for %q\n%s\nthe recording has\n%s", page, part[1], part[2], text)
			}
			return fmt.Appendf(nil, "<!-- results: %s -->%s<!-- end -->", part[1], text)
		})
		if begun := bytes.Count(content, []byte("<!-- results: ")); shown == 0 || begun != shown {
			t.Errorf("%s: %d results, of which %d have an end", page, begun, shown)
		}
		if *update && !bytes.Equal(made, content) {
			must.Do(t, os.WriteFile(page, made, 0o644))
		}
	}
}

var result = regexp.MustCompile(`(?s)<!-- results: ([^>]*?) -->(.*?)<!-- end -->`)

const resultsDir = "testdata/results"

// results are the figures of a recording.
type results struct {
	recorded  string // when, from which commit, and on which machine
	figures   map[figure]map[int]float64
	timelines []record.Record
	interop   [][]string // cells of rows
	faults    [][]string
	injected  string // how many faults in which time
}

// figure is what each round of a benchmark, or each trial, measures once.
type figure struct{ servers, workload, contenders, who, unit string }

func readResults(t *testing.T) *results {
	t.Helper()
	r := &results{figures: map[figure]map[int]float64{}}
	for _, file := range []string{"peers.txt", "recipes.txt", "holds.txt", "plugin-1.txt", "plugin-3.txt", "calls.txt", "memory.txt", "queue.txt"} {
		r.read(t, file)
	}
	_, r.interop = cells(t, "interop.txt")
	r.injected, r.faults = cells(t, "faults.txt")
	r.timelines = trialsOf(t, "timeline/failover.jsonl")[0].Records
	var date, commit string
	must.Get(fmt.Sscan(string(must.Get(os.ReadFile(filepath.Join(resultsDir, "recording.txt")))(t)), &date, &commit))(t)
	on := trialsOf(t, "zookeeper-1.jsonl")[0].Environment
	memory, _, _ := strings.Cut(on.Details["memory"], " ") // in kB
	r.recorded = fmt.Sprintf("*Recorded on %s from commit %s. Servers and clients shared %s processors (%s) and %.0f GB. ZooKeeper %s, Java %s, %s.*",
		date, commit, on.Details["cpus"], on.CPU, must.Get(strconv.ParseFloat(memory, 64))(t)/1e6, on.Server.Version, on.Details["server java.version"], on.Details["go"])
	return r
}

func trialsOf(t *testing.T, file string) []record.Run {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(resultsDir, file)))(t)
	defer f.Close()
	return must.Get(record.Read(f))(t)
}

// cells reads rows of tables, and returns the other lines too.
func cells(t *testing.T, file string) (other string, rows [][]string) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join(resultsDir, file)))(t))) {
		line = strings.TrimSpace(line)
		if row, ok := strings.CutPrefix(line, "| "); ok {
			rows = append(rows, strings.Split(strings.TrimSuffix(row, " |"), " | "))
		} else if !strings.HasPrefix(line, "|") {
			other += line
		}
	}
	return other, rows
}

// read reads a file in the Go benchmark format. A file such as plugin-1.txt has the number of
// servers in its name, and strategies.
func (r *results) read(t *testing.T, file string) {
	t.Helper()
	content := must.Get(os.ReadFile(filepath.Join(resultsDir, file)))(t)
	_, servers, _ := strings.Cut(strings.TrimSuffix(file, ".txt"), "-")
	for _, memory := range plugins.FindAllSubmatch(content, -1) {
		r.add(figure{workload: "WaitingSessions", unit: string(memory[1])}, "", must.Get(strconv.ParseFloat(string(memory[2]), 64))(t))
	}
	for lines := benchfmt.NewReader(bytes.NewReader(content), file); lines.Scan(); {
		line, ok := lines.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		base, parts := line.Name.Parts()
		name := map[string]string{"servers": servers, "workload": string(base)}
		for _, p := range parts {
			if key, value, ok := strings.Cut(strings.TrimPrefix(string(p), "/"), "="); ok {
				name[key] = value
			}
		}
		if name["strategy"] != "" {
			name["workload"] = name["strategy"] + "/" + name["workload"]
		}
		for _, v := range line.Values {
			r.add(figure{name["servers"], name["workload"], name["contenders"] + name["callers"] + name["elements"], name["lock"] + name["via"] + name["command"] + name["queue"], v.Unit}, name["round"], v.Value)
		}
	}
}

// plugins finds what TestWaitingSessionsTakeLittleMemory logs.
var plugins = regexp.MustCompile(`a (plugin|host) takes (\d+) KiB for a waiting session`)

// add adds what was measured in a round. Trials have no number, and are in order.
func (r *results) add(f figure, round string, value float64) {
	if r.figures[f] == nil {
		r.figures[f] = map[int]float64{}
	}
	n, err := strconv.Atoi(round)
	if err != nil {
		n = len(r.figures[f])
	}
	if was, twice := r.figures[f][n]; twice {
		panic(fmt.Sprintf("%+v was measured twice in round %d: %v and %v", f, n, was, value))
	}
	r.figures[f][n] = value
}

var tables = map[string]func(*results) string{
	"recorded": func(r *results) string { return r.recorded + "\n" },
	"readme":   func(r *results) string { return r.recorded + "\n\n" + r.readme() },
	"locks":    (*results).locks, "drains": (*results).drains, "recipes": (*results).recipes, "holds": (*results).holds,
	"plugin": (*results).plugin, "transports": (*results).transports, "calls": (*results).calls, "start": (*results).start,
	"timeline": (*results).timeline, "batches": (*results).batches, "singles": (*results).singles,
	"pairs": (*results).pairs, "faults": (*results).free, "survival": (*results).survival,
	"injected": func(r *results) string { return strings.Fields(r.injected)[0] },
}

// make returns what a comment asks for.
func (r *results) make(what []string) (string, error) {
	if table := tables[what[0]]; table != nil && len(what) == 1 {
		return table(r), nil
	}
	switch {
	case what[0] == "memory" && len(what) == 2: // of a session that waits
		if v := r.median(figure{workload: "WaitingSessions", unit: what[1]}); v > 0 {
			return fmt.Sprintf("%.0f KiB", v), nil
		}
	case what[0] == "holds" && len(what) == 2: // of a session, beside go-zookeeper
		if each := r.ratios(figure{"1", "idle", r.contenders("1", "idle")[0], "handoff", what[1]}, "go-zookeeper"); len(each) > 0 {
			return fmt.Sprintf("%.1f", median(each)), nil
		}
	case what[0] == "used" && len(what) == 2: // processor time of a lock acquired and released on a real server
		if v := r.median(figure{workload: "OverALibrary", who: what[1], unit: "cpu-sec/op"}); v > 0 {
			return micro(v), nil
		}
	case what[0] == "rate" && len(what) == 5: // servers, workload, contenders, who: about
		if rate := r.median(of(what[1], what[2], what[3], what[4])); rate > 0 {
			return strconv.Itoa(about(rate)), nil
		}
	case what[0] == "ratio" && len(what) == 6:
		if each := r.ratios(of(what[1], what[2], what[3], what[4]), what[5]); len(each) > 0 {
			return fmt.Sprintf("%.2f", median(each)), nil
		}
	case what[0] == "ratios" && len(what) == 5: // of all numbers of contenders: servers, workload, a, b
		if all := r.medians(what[1], what[2], what[3], what[4]); len(all) > 0 {
			return fmt.Sprintf("%.1f to %.1f", slices.Min(all), slices.Max(all)), nil
		}
	}
	return "", fmt.Errorf("no such figure")
}

// of returns the figure with the rate of a workload.
func of(servers, workload, contenders, who string) figure {
	unit := "cycles/s"
	switch workload {
	case "drain":
		unit = "handoffs/s"
	case "put", "take":
		unit = "elements/s"
	case "acquire":
		unit = "acquires/s"
	case "failover":
		unit = "failovers/s"
	}
	return figure{servers, workload, contenders, who, unit}
}

func (r *results) median(f figure) float64 { return median(slices.Collect(maps.Values(r.figures[f]))) }

// ratios returns the ratio to another one's figure in each round.
func (r *results) ratios(f figure, to string) (each []float64) {
	other := f
	other.who = to
	for round, value := range r.figures[f] {
		if against, ok := r.figures[other][round]; ok {
			each = append(each, value/against)
		}
	}
	return each
}

// medians returns the median ratio of each number of contenders that compete.
func (r *results) medians(servers, workload, who, to string) (all []float64) {
	for f := range r.figures {
		if each := r.ratios(f, to); f.contenders != "1" && f == of(servers, workload, f.contenders, who) && len(each) > 0 {
			all = append(all, median(each))
		}
	}
	return all
}

// contenders returns the numbers of contenders of a workload.
func (r *results) contenders(servers, workload string) (numbers []string) {
	for f := range r.figures {
		if f.servers == servers && f.workload == workload && !slices.Contains(numbers, f.contenders) {
			numbers = append(numbers, f.contenders)
		}
	}
	slices.SortFunc(numbers, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return numbers
}

func (r *results) cell(f figure) string {
	if v := r.median(f); v > 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return ""
}

// against is a cell with the median, the smallest and the largest ratio.
func (r *results) against(f figure, to string) string {
	each := r.ratios(f, to)
	if len(each) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", median(each), slices.Min(each), slices.Max(each))
}

func (r *results) readme() string {
	var rows [][]string
	for _, n := range r.contenders("1", "cycle") {
		if n == "1" {
			continue
		}
		row := []string{n}
		for _, who := range []string{"go-zookeeper", "curator", "kazoo", "handoff", "plugin-handoff"} {
			row = append(row, r.cell(of("1", "cycle", n, who)))
		}
		rows = append(rows, row)
	}
	return table("contenders | go-zookeeper's Lock | Curator's InterProcessMutex | kazoo's Lock | ours | ours, through the plugin", rows)
}

func (r *results) locks() string {
	var rows [][]string
	for _, servers := range []string{"1", "3"} {
		for _, n := range r.contenders(servers, "cycle") {
			at := func(who string) figure { return of(servers, "cycle", n, who) }
			row := []string{servers, n}
			for _, who := range []string{"plain", "go-zookeeper", "curator", "kazoo", "predecessor", "handoff", "relay-handoff", "plugin-handoff"} {
				row = append(row, r.cell(at(who)))
			}
			rows = append(rows, append(row, r.against(at("handoff"), "go-zookeeper"), r.against(at("handoff"), "plain"),
				r.against(at("plugin-handoff"), "go-zookeeper"), r.against(at("plugin-handoff"), "relay-handoff")))
		}
	}
	return table("servers | contenders | plain | go-zookeeper | Curator | kazoo | predecessor | handoff | relay | plugin | handoff : go-zookeeper | handoff : plain | plugin : go-zookeeper | plugin : relay", rows)
}

func (r *results) drains() string {
	var rows [][]string
	for _, servers := range []string{"1", "3"} {
		for _, n := range r.contenders(servers, "drain") {
			at := func(who string) figure { return of(servers, "drain", n, who) }
			row := []string{servers, n}
			for _, who := range []string{"floor", "handover", "go-zookeeper", "predecessor", "handoff", "relay-handoff", "plugin-handoff"} {
				row = append(row, r.cell(at(who)))
			}
			rows = append(rows, append(row, r.against(at("handoff"), "go-zookeeper"), r.against(at("handoff"), "floor"), r.against(at("plugin-handoff"), "relay-handoff")))
		}
	}
	return table("servers | contenders | floor | handover | go-zookeeper | predecessor | handoff | relay | plugin | handoff : go-zookeeper | handoff : floor | plugin : relay", rows)
}

var peers = []string{"go-zookeeper", "curator", "kazoo"}

func (r *results) recipes() string {
	var rows [][]string
	for _, servers := range []string{"1", "3"} {
		for _, workload := range []string{"acquire", "many", "semaphore", "shared", "barrier", "put", "take", "failover"} {
			at := func(who string) figure { return of(servers, workload, r.contenders(servers, workload)[0], who) }
			row := []string{servers, "`" + workload + "`"}
			best := ""
			for _, who := range peers {
				row = append(row, r.cell(at(who)))
				if r.median(at(who)) > r.median(at(best)) {
					best = who
				}
			}
			for _, who := range []string{"handoff", "relay-handoff", "plugin-handoff"} {
				row = append(row, r.cell(at(who)))
			}
			rows = append(rows, append(row, r.against(at("handoff"), best), r.against(at("plugin-handoff"), best), r.against(at("plugin-handoff"), "relay-handoff")))
		}
	}
	return table("servers | workload | go-zookeeper | Curator | kazoo | ours | relay | plugin | ours : best peer | plugin : best peer | plugin : relay", rows)
}

// holds is a table of what holds cost. Less is better.
func (r *results) holds() string {
	var rows [][]string
	for _, w := range []struct{ workload, unit, what string }{
		{"idle", "server-ms/s", "sessions with a hold each: ms of the server a second"},
		{"idle", "client-ms/s", "the same: ms of the client a second"},
		{"hold", "held-after-s", "locks of one session: seconds until all are held"},
		{"hold", "server-ms/s", "the same: ms of the server a second"},
		{"hold", "client-ms/s", "the same: ms of the client a second"},
	} {
		for _, n := range r.contenders("1", w.workload) {
			ours := figure{"1", w.workload, n, "handoff", w.unit}
			theirs := ours
			theirs.who = "go-zookeeper"
			what := w.what
			if !strings.HasPrefix(what, "the same") {
				what = n + " " + what
			}
			rows = append(rows, []string{what, fmt.Sprintf("%.2f", r.median(theirs)), fmt.Sprintf("%.2f", r.median(ours)), r.against(ours, "go-zookeeper")})
		}
	}
	return table(" | go-zookeeper | ours | ours : go-zookeeper", rows)
}

func (r *results) plugin() string {
	var rows [][]string
	for _, servers := range []string{"1", "3"} {
		for _, workload := range []string{"predecessor/drain", "predecessor/cycle", "handoff/drain", "handoff/cycle"} {
			at := func(via, unit string) figure { return figure{servers, workload, "100", via, unit} }
			row := []string{servers, strings.Replace(workload, "/", ", ", 1)}
			for _, via := range []string{"direct", "relay", "plugin"} {
				row = append(row, r.cell(at(via, "handoffs/s")))
			}
			row = append(row, r.against(at("plugin", "handoffs/s"), "relay"))
			for _, via := range []string{"direct", "relay", "plugin"} {
				used := r.median(at(via, "host-cpu-sec/op")) + r.median(at(via, "other-cpu-sec/op"))
				row = append(row, fmt.Sprintf("%.0f µs", used*1e6))
			}
			rows = append(rows, row)
		}
	}
	return table("servers | lock | direct | relay | plugin | plugin : relay | processor time: direct | relay | plugin", rows)
}

// transports is a table of the ways to make a call, with both ends in one process.
func (r *results) transports() string {
	var rows [][]string
	for _, c := range []struct{ what, callers, unit string }{
		{"p50", "1", "p50-sec"},
		{"processor time", "1", "cpu-sec/op"},
		{"processor time with 20 callers", "20", "cpu-sec/op"},
	} {
		row := []string{c.what}
		for _, via := range []string{"unary", "connection", "tls"} {
			row = append(row, micro(r.median(figure{"", "Transport", c.callers, via, c.unit})))
		}
		rows = append(rows, row)
	}
	return table(" | gRPC call | on a connection | bare TLS", rows)
}

// calls is a table of calls between two processes.
func (r *results) calls() string {
	var rows [][]string
	for _, c := range []struct{ what, base, unit string }{
		{"a call, p50", "Call", "p50-sec"},
		{"a call, processor time", "Call", "cpu-sec/op"},
		{"a call with 20 callers, processor time", "Calls", "cpu-sec/op"},
		{"a call after 300 µs of idle time, p50", "CallAfterIdle", "p50-sec"},
	} {
		grpc, ours := r.median(figure{workload: c.base, who: "process,unary", unit: c.unit}), r.median(figure{workload: c.base, who: "process", unit: c.unit})
		rows = append(rows, []string{c.what, micro(grpc), micro(ours), fmt.Sprintf("%.2f", ours/grpc)})
	}
	return table(" | gRPC calls | on a connection | ratio", rows)
}

// start is a table of what zkrecipes lock PATH -- true takes.
func (r *results) start() string {
	var rows [][]string
	for _, part := range []struct{ what, unit string }{
		{"launch the plugin: start, keys, handshake, attach", "launch-ms"},
		{"open the session, and the connection of calls", "session-ms"},
		{"acquire the lock", "lock-ms"},
		{"release", "release-ms"},
		{"close the session", "close-ms"},
		{"end the plugin", "exit-ms"},
	} {
		rows = append(rows, []string{part.what, fmt.Sprintf("%.1f ms", r.median(figure{workload: "LockCommand", unit: part.unit}))})
	}
	all := r.median(figure{workload: "LockCommand", who: "lock", unit: "p50-ms"})
	return table("part | ", append(rows, []string{"all of it, with the start of the tool, a check for other kinds of locks and the command", fmt.Sprintf("%.0f ms", all)}))
}

func micro(seconds float64) string { return fmt.Sprintf("%.0f µs", seconds*1e6) }

// longQueues are how a long queue was measured, as the tables name it.
var longQueues = []struct{ name, who string }{
	{"library, one session", "ours-shared"},
	{"library, four sessions", "ours"},
	{"plugin, one session", "plugin-shared"},
	{"plugin, four sessions", "plugin"},
	{"kazoo's `Queue`, four clients", "kazoo"},
	{"Curator's `SimpleDistributedQueue`, four clients", "curator"},
}

// batches is a table of long queues whose elements were put and taken in batches.
func (r *results) batches() string {
	var rows [][]string
	for _, n := range r.contenders("", "LongQueue") {
		for _, q := range longQueues {
			at := func(unit string) figure { return figure{"", "LongQueue", n, q.who + "-batch", unit} }
			if r.median(at("taken")) > 0 {
				rows = append(rows, []string{n, q.name, r.cell(at("put-many/s")), r.seconds(at("len-s")), r.seconds(at("first-s")), r.taken(at),
					r.cell(at("client-MiB")), r.cell(at("server-MiB"))})
			}
		}
	}
	return table("elements | queue | put, a second | `Len` | first element after | taken | MiB of the client | of the server", rows)
}

// singles is a table of long queues whose elements were taken one by one.
func (r *results) singles() string {
	var rows [][]string
	for _, n := range r.contenders("", "LongQueue") {
		for _, q := range longQueues {
			at := func(unit string) figure { return figure{"", "LongQueue", n, q.who, unit} }
			if r.median(at("put/s")) > 0 {
				rows = append(rows, []string{n, q.name, r.cell(at("put/s")), r.seconds(at("len-s")), r.seconds(at("first-s")), r.taken(at), r.cell(at("client-MiB"))})
			}
		}
	}
	return table("elements | queue | put one by one, a second | `Len` | first element after | taken | MiB of the client", rows)
}

// taken is a cell with the number of elements taken, or that the library failed.
func (r *results) taken(at func(unit string) figure) string {
	n, seconds := r.median(at("taken")), r.median(at("take-s"))
	if seconds == 0 {
		return "fails"
	}
	return fmt.Sprintf("%.0f in %.0f s, %.0f/s", n, seconds, n/seconds)
}

// pairs is a table of the recipes of two libraries on one path.
func (r *results) pairs() string {
	return table("pair | turns of theirs | of ours | changes of library | longest pause without a kill | after a kill | holders killed, theirs and ours | violations", r.interop)
}

// free is a table of how long a lock is free after a fault.
func (r *results) free() string {
	return table("fault | times | lock free, median | worst | another leader after", r.faults[1:r.ages()])
}

// survival is a table of how long holds last that a fault ends.
func (r *results) survival() string {
	return table("age of the hold | holds | `Done()` after, least | median | most", r.faults[r.ages()+1:])
}

// ages is where the second of the two tables of faults begins.
func (r *results) ages() int {
	return slices.IndexFunc(r.faults, func(row []string) bool { return row[0] == "age" })
}

// seconds is a cell with a time that a library may not have reached.
func (r *results) seconds(f figure) string {
	if len(r.figures[f]) == 0 {
		return "fails"
	}
	return fmt.Sprintf("%.2f s", r.median(f))
}

// timeline is a table of the longest times without a grant.
func (r *results) timeline() string {
	faults := []string{"none yet", "leader killed", "follower killed", "holder cut off"}
	gaps, lost := make([][]float64, len(faults)), make([][]float64, len(faults))
	for _, trial := range r.timelines {
		gaps[0] = append(gaps[0], float64(trial.Timeline.Before.Longest))
		lost[0] = append(lost[0], 0)
		for i, f := range trial.Timeline.Faults {
			gaps[i+1] = append(gaps[i+1], float64(f.Gap.Longest))
			lost[i+1] = append(lost[i+1], float64(f.Lost))
		}
	}
	var rows [][]string
	for i, fault := range faults {
		shown := func(of float64) string { return time.Duration(of).Round(time.Millisecond).String() }
		rows = append(rows, []string{fault, shown(median(gaps[i])), shown(slices.Min(gaps[i])) + ", " + shown(slices.Max(gaps[i])),
			fmt.Sprintf("%.0f to %.0f", slices.Min(lost[i]), slices.Max(lost[i]))})
	}
	return table(fmt.Sprintf("fault | longest time without a grant, median of %d | smallest, largest | sessions lost", len(r.timelines)), rows)
}

func table(header string, rows [][]string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |\n|%s\n", header, strings.Repeat("---|", strings.Count(header, "|")+1))
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
	}
	return out.String()
}

// about rounds to two digits.
func about(v float64) int {
	unit := math.Pow(10, max(math.Floor(math.Log10(v))-1, 0))
	return int(math.Round(v/unit) * unit)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
