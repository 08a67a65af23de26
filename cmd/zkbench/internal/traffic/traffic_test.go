package traffic_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/traffic"
	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// arrival is an acquisition of a synthetic log.
type arrival struct{ at, hold time.Duration }

// poisson returns the arrivals of a time span, at a rate per second. hold draws the length of each
// hold.
func poisson(seed uint64, rate float64, in time.Duration, hold func(*rand.Rand) time.Duration) (all []arrival) {
	random := rand.New(rand.NewPCG(seed, 7))
	for at := 0.0; ; {
		at += random.ExpFloat64() / rate
		if at >= in.Seconds() {
			return all
		}
		all = append(all, arrival{time.Duration(at * float64(time.Second)), hold(random)})
	}
}

func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

func constant(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

// audited writes the transaction log of a line with these arrivals, first come, first served, and
// returns its audit as zkrecipes audit -holds -format=json prints it.
func audited(t *testing.T, permits int, all []arrival) string {
	t.Helper()
	type event struct {
		at     time.Duration
		change txnlog.Change
	}
	marker := "lock-"
	if permits > 1 {
		marker = "lease-"
	}
	var events []event
	var ends []time.Duration // of the holds so far, sorted
	for i, a := range all {
		path := fmt.Appendf(nil, "/jobs/%s%010d", marker, i)
		granted := a.at
		if i >= permits {
			granted = max(a.at, ends[len(ends)-permits])
		}
		at, _ := slices.BinarySearch(ends, granted+a.hold)
		ends = slices.Insert(ends, at, granted+a.hold)
		events = append(events, event{a.at, txnlog.Change{Type: txnlog.Create, Path: path, Ephemeral: true}},
			event{granted + a.hold, txnlog.Change{Type: txnlog.Delete, Path: path}})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	log := logtest.NewLog(0)
	from := log.Time
	log.Txn(1, 1, txnlog.Change{Type: txnlog.Create, Path: []byte("/jobs"), Data: fmt.Append(nil, permits)})
	for _, e := range events {
		log.Time = from + e.at.Milliseconds()
		var n int
		must.Get(fmt.Sscanf(string(e.change.Path), "/jobs/"+marker+"%d", &n))(t)
		log.Txn(int64(2+n%20), 1, e.change)
	}
	file := filepath.Join(t.TempDir(), "log.1")
	must.Do(t, os.WriteFile(file, log.Bytes, 0o600))
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	r := must.Get(audit.Audit(t.Context(), must.Get(txnlog.Find(file))(t), audit.Config{Path: "/", Hold: func(h audit.Hold) error { return lines.Encode(h) }}))(t)
	if len(r.Violations) > 0 {
		t.Fatalf("%+v", r.Violations)
	}
	report := must.Get(json.MarshalIndent(r, "", "  "))(t)
	return out.String() + string(report) + "\n"
}

func read(t *testing.T, text string) *traffic.Log {
	t.Helper()
	return must.Get(traffic.Read(strings.NewReader(text), "/"))(t)
}

// TestWaitsAreThoseOfQueueingTheory: three hours of Poisson arrivals at a line that is used for 60% of
// the time. The expected waits are known. The forecast must be within a tenth of their mean and 15% of
// their quantiles, and its intervals must contain them.
func TestWaitsAreThoseOfQueueingTheory(t *testing.T) {
	const hold = 300 * time.Millisecond
	for _, queue := range []struct {
		name           string
		permits        int
		hold           func(*rand.Rand) time.Duration
		mean, p50, p99 float64 // milliseconds; 0: not known
	}{
		// rho/(mu-lambda), and P(W > t) = rho exp(-(mu-lambda)t)
		{"M/M/1", 1, exponential(hold), 450, 1000 * math.Log(0.6/0.5) / (4. / 3), 1000 * math.Log(0.6/0.01) / (4. / 3)},
		// rho hold/(2(1-rho)), by Pollaczek and Khinchin
		{"M/D/1", 1, constant(hold), 225, 0, 0},
		// C/(2 mu-lambda), and P(W > t) = C exp(-(2 mu-lambda)t), with Erlang's C = 0.45
		{"M/M/2", 2, exponential(hold), 168.75, 0, 1000 * math.Log(0.45/0.01) / (8. / 3)},
	} {
		t.Run(queue.name, func(t *testing.T) {
			l := read(t, audited(t, queue.permits, poisson(1, 2*float64(queue.permits), 3*time.Hour, queue.hold)))
			split, part := l.Split()
			if part != "the last hour" || l.To.Sub(split) != time.Hour {
				t.Errorf("%s is held out, from %s on", part, split)
			}
			f := must.Get(l.Paths[0].Predict(l, split, 1, 1))(t)
			if math.Abs(f.Used-0.6) > 0.02 || math.Abs(f.Growth-1/0.6) > 0.06 || math.Abs(f.Rate-2*float64(queue.permits)) > 0.1 {
				t.Errorf("%+v", f)
			}
			for _, e := range []struct {
				name   string
				known  float64
				margin float64
				plan.Estimate
			}{{"mean", queue.mean, 0.1, f.Waits.Mean}, {"p50", queue.p50, 0.15, f.Waits.P50}, {"p99", queue.p99, 0.15, f.Waits.P99}} {
				known := e.known * 1e6
				if known > 0 && (math.Abs(e.Value/known-1) > e.margin || known < e.Lo || known > e.Hi) {
					t.Errorf("%s: %v (%v to %v); in theory %v", e.name, time.Duration(e.Value), time.Duration(e.Lo), time.Duration(e.Hi), time.Duration(known))
				}
			}
		})
	}
}

// TestGrowth: 1.4 times the arrivals of a line that is used for 60% of the time. By M/M/1 the mean wait
// is 0.84/(3.33-2.8) seconds.
func TestGrowth(t *testing.T) {
	l := read(t, audited(t, 1, poisson(1, 2, 3*time.Hour, exponential(300*time.Millisecond))))
	split, _ := l.Split()
	f := must.Get(l.Paths[0].Predict(l, split, 1.4, 1))(t)
	if known := 1.575e9; f.Waits.Mean.Value < 0.8*known || f.Waits.Mean.Value > 1.2*known {
		t.Errorf("%v; in theory %v", time.Duration(f.Waits.Mean.Value), time.Duration(known))
	}
	if _, err := l.Paths[0].Predict(l, split, 1.7, 1); err == nil || !strings.Contains(err.Error(), "1.7 times the arrivals would take 10") {
		t.Errorf("1.7 times the arrivals: %v", err)
	}
}

// TestAnotherLastHourIsSeen: the last hour has 1.5 times the arrivals of the hours before. The
// error of the held-out part shows that.
func TestAnotherLastHourIsSeen(t *testing.T) {
	all := poisson(1, 2, 2*time.Hour, exponential(300*time.Millisecond))
	for _, a := range poisson(2, 3, time.Hour, exponential(300*time.Millisecond)) {
		all = append(all, arrival{2*time.Hour + a.at, a.hold})
	}
	l := read(t, audited(t, 1, all))
	split, _ := l.Split()
	f := must.Get(l.Paths[0].Predict(l, split, 1, 1))(t)
	if f.Measured.Mean.Value <= f.Predicted.Mean.Hi || f.Measured.P99.Value <= f.Predicted.P99.Hi {
		t.Errorf("predicted %+v, measured %+v", f.Predicted, f.Measured)
	}
}

func TestRefusals(t *testing.T) {
	steady := func(rate float64, in time.Duration) []arrival {
		return poisson(1, rate, in, exponential(300*time.Millisecond))
	}
	late := func(all []arrival) []arrival { return append(all, arrival{3 * time.Hour, 0}) } // the log continues
	for _, c := range []struct {
		name string
		all  []arrival
		edit func(string) string
		want string
	}{
		{"few arrivals", late(steady(0.01, 2*time.Hour)), nil, "too few arrivals: 66 before the part that is held out; at least 100 are needed"},
		{"nothing to hold out", late(steady(1, 2*time.Hour)), nil, "no part to hold out: 1 arrival after"},
		{"short holds", poisson(1, 2, time.Hour, constant(0)), nil, "all holds are shorter than a millisecond"},
		{"overloaded", steady(4, 20*time.Minute), nil, "of its time: the line grows without end"},
		{"missing holds", steady(2, 3*time.Hour), func(text string) string {
			var kept []string
			for i, line := range strings.SplitAfter(text, "\n") {
				if !strings.HasPrefix(line, `{"line"`) || i%3 > 0 {
					kept = append(kept, line)
				}
			}
			return strings.Join(kept, "")
		}, "are not those that follow from its holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := audited(t, 1, c.all)
			if c.edit != nil {
				text = c.edit(text)
			}
			l := read(t, text)
			split, _ := l.Split()
			f, err := l.Paths[0].Predict(l, split, 1, 1)
			if err == nil || !strings.Contains(err.Error(), c.want) || f.Waits != (traffic.Waits{}) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	good := audited(t, 1, poisson(1, 1, time.Minute, constant(time.Millisecond)))
	at := strings.Index(good, "{\n")
	holds, report := good[:at], good[at:]
	first := holds[:strings.Index(holds, "\n")+1]
	for _, c := range []struct{ name, text, below, want string }{
		{"empty", "", "/", "it is not an audit"},
		{"text", "Usage: zkrecipes", "/", "it is not an audit"},
		{"records", `{"zkbench":1,"environment":{}}`, "/", "it is not an audit"},
		{"a list", "[1]", "/", "it is not an audit"},
		{"a hold without its arrival", `{"line":"/x","token":1}`, "/", "it is not an audit"},
		{"cut in a line", holds[:len(holds)-9], "/", "it is truncated"},
		{"cut between lines", holds, "/", "it is truncated"},
		{"cut in the report", good[:len(good)-20], "/", "it is truncated"},
		{"no holds", report, "/", "without holds"},
		{"a clock that has jumped", strings.Replace(good, `"time": "2023`, `"time": "2024`, 1), "/", "the leader's clock has jumped"},
		{"two audits", good + good, "/", "it continues after its report"},
		{"overlapping logs", first + good, "/", "the logs overlap"},
		{"a hold without a line", strings.Replace(good, `"line":"/jobs"`, `"line":"/other"`, 1), "/", "it has holds of /other, and its report has no such line"},
		{"another path", good, "/job", "no line at or below /job has a hold"},
	} {
		if _, err := traffic.Read(strings.NewReader(c.text), c.below); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	all := must.Get(traffic.Read(strings.NewReader(good), "/jobs"))(t).Paths[0]
	before := must.Get(traffic.Read(strings.NewReader(strings.Replace(good, `"joined":"2023`, `"joined":"2022`, 1)), "/jobs"))(t).Paths[0]
	if len(before.Acquisitions) != len(all.Acquisitions)-1 || before.Cut != all.Cut+1 {
		t.Errorf("a contender that joined before the log: %d of %d, %d cut", len(before.Acquisitions), len(all.Acquisitions), before.Cut)
	}
}

// TestLinesOfTwoLibrariesAreApart: they are separate even at one path. The line of kazoo becomes a
// shared lock at its first reader.
func TestLinesOfTwoLibrariesAreApart(t *testing.T) {
	text := ""
	for i, hold := range []string{`"lock","dialect":"kazoo"`, `"shared-lock","dialect":"kazoo","reads":true`, `"lock","dialect":"zookeeper"`} {
		text += fmt.Sprintf(`{"line":"/l","kind":%s,"token":%d,"joined":"2026-01-02T15:00:00Z","granted":"2026-01-02T15:00:00Z","ended":"2026-01-02T15:00:01Z"}`+"\n", hold, i+1)
	}
	l := read(t, text+`{"path":"/","transactions":6,"from":{"time":"2026-01-02T15:00:00Z"},"to":{"time":"2026-01-02T15:00:09Z"},
		"lines":[{"path":"/l","kind":"lock","dialect":"zookeeper"},{"path":"/l","kind":"shared-lock","dialect":"kazoo"}]}`)
	if len(l.Paths) != 1 || len(l.Paths[0].Acquisitions) != 1 || len(l.Others) != 1 || len(l.Others[0].Acquisitions) != 2 || !slices.Equal(l.Strange, []string{"/l, shared-lock: readers hold it together"}) {
		t.Errorf("%+v, %+v, %q", l.Paths, l.Others, l.Strange)
	}
}

func TestStrangeLinesAreLeftOut(t *testing.T) {
	good := audited(t, 1, poisson(1, 1, time.Minute, constant(time.Millisecond)))
	for kind, want := range map[string]string{"priority-lock": "its order is not", "semaphore": "its number of permits"} {
		l := read(t, strings.NewReplacer(`"kind":"lock"`, `"kind":"`+kind+`"`, `"kind": "lock"`, `"kind": "`+kind+`"`).Replace(good))
		if len(l.Paths) != 0 || len(l.Strange) != 1 || !strings.HasPrefix(l.Strange[0], "/jobs, "+kind+": "+want) {
			t.Errorf("%q", l.Strange)
		}
	}
	if l := read(t, strings.Replace(good, `"kind":"lock",`, `"kind":"lock","reads":true,`, 1)); len(l.Strange) != 1 || len(l.Others) != 1 || !l.Others[0].Acquisitions[0].Reads || l.Others[0].Acquisitions[1].Reads {
		t.Errorf("%+v", l)
	}
	urgent := regexp.MustCompile(`"znode":"[^"]*"`).ReplaceAllString(good, `"znode":"_c_1-writing-07-0000000003"`)
	if l := read(t, urgent); l.Paths[0].Acquisitions[0].Priority != 7 {
		t.Errorf("%+v", l.Paths[0].Acquisitions[0])
	}
}

func TestLoads(t *testing.T) {
	from := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	l := &traffic.Log{From: from, To: from.Add(time.Hour)}
	sample := func(server string, after time.Duration, figures ...float64) traffic.Sample {
		s := traffic.Sample{Server: server, Time: from.Add(after), Figures: map[string]float64{}}
		for i, name := range []string{"packets_received", "cnt_fsynctime", "sum_fsynctime", "num_alive_connections", "open_file_descriptor_count", "max_file_descriptor_count"} {
			if i < len(figures) {
				s.Figures[name] = figures[i]
			}
		}
		return s
	}
	all := must.Get(l.Loads([]traffic.Sample{
		sample("b", 10*time.Second, 2000, 200, 1500, 7, 100, 4096), sample("a", 0, 1000), sample("b", 0, 1000, 100, 500, 8, 101, 4096), sample("a", 20*time.Second, 3000),
	}))(t)
	want := []traffic.Load{
		{Server: "b", From: from, To: from.Add(10 * time.Second), Samples: 2, Packets: 100, Least: 0.1, Most: 0.11, Connections: 7, Open: 100, Files: 4096},
		{Server: "a", From: from, To: from.Add(20 * time.Second), Samples: 2, Packets: 100},
	}
	if !slices.Equal(all, want) {
		t.Errorf("%+v; want %+v", all, want)
	}
	for want, samples := range map[string][]traffic.Sample{
		"no samples":                  nil,
		"one sample has no rate":      {sample("a", 0, 1)},
		"with different times":        {sample("a", 0, 1), sample("a", 0, 2)},
		"and the log is from":         {sample("a", -time.Hour, 1), sample("a", -time.Minute, 2)},
		"its counters were reset":     {sample("a", 0, 5), sample("a", time.Minute, 1), sample("a", 2*time.Minute, 9)},
		"the samples are from 2026-0": {sample("a", 2*time.Hour, 1), sample("a", 3*time.Hour, 2)},
	} {
		if _, err := l.Loads(samples); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestIntervalsContainWhatWasHeldOut: 80 half hours of Poisson arrivals. In at least 85% of them,
// the held-out part lies in the 95% intervals.
func TestIntervalsContainWhatWasHeldOut(t *testing.T) {
	const logs = 80
	from := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	inside := map[string]int{}
	for seed := range uint64(logs) {
		p := &traffic.Path{Name: "/jobs", Kind: "lock", Permits: 1}
		var free time.Duration
		for _, a := range poisson(seed, 2, 30*time.Minute, exponential(300*time.Millisecond)) {
			granted := max(a.at, free)
			free = granted + a.hold
			p.Acquisitions = append(p.Acquisitions, traffic.Acquisition{At: from.Add(a.at), Wait: granted - a.at, Hold: a.hold})
		}
		l := &traffic.Log{From: from, To: from.Add(30 * time.Minute)}
		split, _ := l.Split()
		f, err := p.Predict(l, split, 1, seed)
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range map[string][2]plan.Estimate{"p50": {f.Predicted.P50, f.Measured.P50}, "p99": {f.Predicted.P99, f.Measured.P99}, "mean": {f.Predicted.Mean, f.Measured.Mean}} {
			if m := e[1].Value; m >= e[0].Lo && m <= e[0].Hi {
				inside[name]++
			}
		}
	}
	for _, name := range []string{"p50", "p99", "mean"} {
		if inside[name] < logs*85/100 {
			t.Errorf("%s: %d of %d", name, inside[name], logs)
		}
	}
}
