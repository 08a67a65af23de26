package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/audit"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// writeAudit writes the audit of a server's files as zkrecipes audit -holds -format=json does.
func writeAudit(w io.Writer, dir string) (*audit.Report, error) {
	files, err := txnlog.Find(dir)
	if err != nil {
		return nil, err
	}
	lines := json.NewEncoder(w)
	r, err := audit.Audit(context.Background(), files, audit.Config{Path: "/", Hold: func(h audit.Hold) error { return lines.Encode(h) }})
	if err != nil {
		return nil, err
	}
	lines.SetIndent("", "  ")
	return r, lines.Encode(r)
}

func auditFile(t *testing.T, dir string) (name string, r *audit.Report) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "audit.json")))(t)
	defer f.Close()
	return f.Name(), must.Get(writeAudit(f, dir))(t)
}

// TestProductionIsPlannedAndReplayed plays Poisson arrivals at two locks of a real server. Then it
// audits the server's log, plans from the audit, and replays it on the same server. The log shows that
// the replay has changed nothing outside its own path. On a busy machine the locks cannot carry their
// arrivals: then the plan refuses, and the replay may not keep up. With -update the test records a minute.
func TestProductionIsPlannedAndReplayed(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.NoSync = false // so that mntr has the times of syncs
	e := ensembletest.Start(t, cfg)
	length := 5 * time.Second
	rates := map[string]float64{"/jobs/billing": 40, "/jobs/report": 35, "/jobs/pool": 20, "/jobs/cache": 20, "/jobs/urgent": 10}
	holds := map[string]time.Duration{"/jobs/billing": 6 * time.Millisecond, "/jobs/report": 2 * time.Millisecond, "/jobs/pool": 30 * time.Millisecond, "/jobs/cache": 10 * time.Millisecond, "/jobs/urgent": 10 * time.Millisecond}
	if *update {
		length = time.Minute
		rates = map[string]float64{"/jobs/billing": 10, "/jobs/report": 4}
		holds = map[string]time.Duration{"/jobs/billing": 25 * time.Millisecond, "/jobs/report": 50 * time.Millisecond}
	}
	samples := t.TempDir()
	produce(t, e, samples, length, rates, holds)
	mntr := must.Get(filepath.Glob(filepath.Join(samples, "*.mntr")))(t)
	file, before := auditFile(t, e.Server(0).DataDir())
	if *update {
		recordProduction(t, e, mntr)
	}
	code, stdout, stderr := whole(t, append([]string{"plan", "-from-audit", file, "-from-mntr"}, mntr...)...)
	t.Logf("plan: exit code %d\n%s%s", code, stdout, stderr)
	for _, want := range []string{`(?m)^/jobs/billing, lock: (held \d+% of the time, saturated at|refused: )`, `(?m)^/jobs/report, lock: (held|refused: )`, `server .*zk1: .* requests a second and \d+ connections, by 2 samples`, `more contenders: \d+ sessions`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %s in the plan", want)
		}
	}
	code, stdout, stderr = whole(t, "replay", "-servers", e.Connect(), "-sessions", "7", file)
	t.Logf("replay: exit code %d\n%s%s", code, stdout, stderr)
	for path, kind := range kinds {
		if !*update && !strings.Contains(stdout, path+" ") {
			t.Errorf("%s, %s, is not replayed", path, kind)
		}
	}
	busy := code == exit.Invalid && strings.Contains(stderr, "not granted in time")
	if code != exit.OK && !busy || !strings.Contains(stderr, "by 5 sessions") {
		t.Errorf("exit code %d", code)
	}
	_, after := auditFile(t, e.Server(0).DataDir())
	if len(after.Violations)+len(after.Events) > 0 {
		t.Errorf("%+v %+v", after.Violations, after.Events)
	}
	for _, was := range before.Lines {
		at := func(path string) *audit.Line {
			return after.Lines[slices.IndexFunc(after.Lines, func(l *audit.Line) bool {
				return l.Path == path || strings.HasPrefix(l.Path, "/zkbench/") && path == "" && strings.HasSuffix(l.Path, was.Path)
			})]
		}
		if is := at(was.Path); is.Contenders != was.Contenders || is.Holding+is.Waiting > 0 {
			t.Errorf("the replay has changed %+v to %+v", was, is)
		}
		if is := at(""); is.Grants > was.Grants || is.Grants < was.Grants && !busy || is.Holding+is.Waiting > 0 || is.Kind != was.Kind || is.Permits != was.Permits {
			t.Errorf("%+v was replayed as %+v", was, is)
		} else {
			t.Logf("%s, by the log: wait %v and %v, hold %v and %v at p50, wait %v and %v at p99 in production and replay", was.Path, was.Wait.Quantile(.5), is.Wait.Quantile(.5), was.Hold.Quantile(.5), is.Hold.Quantile(.5), was.Wait.Quantile(.99), is.Wait.Quantile(.99))
		}
	}
}

// kinds are the paths that are not locks.
var kinds = map[string]load.Recipe{"/jobs/pool": "semaphore", "/jobs/cache": "shared-lock", "/jobs/urgent": "priority-lock"}

// produce plays Poisson arrivals with exponential holds, and samples mntr before and after.
func produce(t *testing.T, e *ensemble.Ensemble, samples string, length time.Duration, rates map[string]float64, holds map[string]time.Duration) {
	t.Helper()
	var sessions []recipes.Client
	for range 5 {
		s := must.Get(zookeeper.Open(t.Context(), recipes.SessionConfig{Servers: e.Addrs(), SessionTimeout: 30 * time.Second}))(t)
		defer func() { _ = s.Close(t.Context()) }()
		sessions = append(sessions, s)
	}
	sample := func() {
		text := must.Get(e.Server(0).Word(t.Context(), "mntr"))(t)
		must.Do(t, os.WriteFile(filepath.Join(samples, "zk1-"+time.Now().UTC().Format("20060102T150405Z")+".mntr"), []byte(text), 0o644))
	}
	sample()
	var group errgroup.Group
	start := time.Now()
	for path, rate := range rates {
		random := rand.New(rand.NewPCG(uint64(rate), 0))
		var all []load.Acquisition
		for at := 0.0; ; {
			at += random.ExpFloat64() / rate
			if at > length.Seconds() {
				break
			}
			all = append(all, load.Acquisition{At: time.Duration(at * 1e9), Hold: time.Duration(random.ExpFloat64() * float64(holds[path])), Session: random.IntN(len(sessions)), Reads: kinds[path] != "semaphore" && random.IntN(2) == 0, Priority: random.IntN(100)})
		}
		group.Go(func() error {
			_, err := load.Load{Recipe: cmp.Or(kinds[path], load.Lock), Permits: 2, Path: path, Sessions: sessions}.Replay(t.Context(), start, all, time.Hour)
			return err
		})
	}
	must.Do(t, group.Wait())
	sample()
}

// recordProduction copies the log and the samples for docs/capacity.md, without the zeros that the
// server has allocated.
func recordProduction(t *testing.T, e *ensemble.Ensemble, mntr []string) {
	dir := filepath.Join("..", "..", "testdata", "results", "production")
	must.Do(t, os.MkdirAll(dir, 0o755))
	for _, old := range must.Get(filepath.Glob(filepath.Join(dir, "*")))(t) {
		must.Do(t, os.Remove(old))
	}
	log := must.Get(os.ReadFile(filepath.Join(e.Server(0).DataDir(), "log.1")))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "log.1"), append([]byte(strings.TrimRight(string(log), "\x00")), make([]byte, 64)...), 0o644))
	for _, name := range mntr {
		must.Do(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), must.Get(os.ReadFile(name))(t), 0o644))
	}
}

// madeAudit writes an audit of one line with n holds of 1 ms, one every 10 ms.
func madeAudit(t *testing.T, kind string, n int) string {
	var b strings.Builder
	from := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	at := func(ms int) string { return from.Add(time.Duration(ms) * time.Millisecond).Format(time.RFC3339Nano) }
	for i := range n {
		fmt.Fprintf(&b, `{"line":"/jobs","kind":%q,"znode":"%d","session_id":"0x%d","token":%d,"joined":%q,"granted":%[5]q,"ended":%q}`+"\n", kind, i, i%50, i+1, at(10*i), at(10*i+1))
	}
	fmt.Fprintf(&b, `{"path":"/","transactions":%d,"from":{"time":%q},"to":{"time":%q},"lines":[{"path":"/jobs","kind":%q}]}`, 2*n, at(0), at(10*n), kind)
	file := filepath.Join(t.TempDir(), "audit.json")
	must.Do(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

func TestABrokenLockFailsTheReplay(t *testing.T) {
	file := madeAudit(t, "lock", 20)
	var mu sync.Mutex
	var opened []recipes.Client
	sound := with(func(s recipes.Client) recipes.Client {
		mu.Lock()
		defer mu.Unlock()
		opened = append(opened, s)
		return s
	}, zookeeper.Open)
	if code, stdout, stderr := zkbench(t.Context(), sound, "replay", "-sessions", "3", file); code == exit.Broken || !strings.Contains(stdout, "/jobs  lock") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if n := len(opened); n != 4 { // one session is for the check of the transport
		t.Errorf("%d sessions", n)
	}
	for _, s := range opened {
		if s.Err() == nil {
			t.Error("a session is open")
		}
	}
	code, _, stderr := zkbench(t.Context(), with(stale, zookeeper.Open), "replay", file)
	if code != exit.Broken || !strings.Contains(stderr, "the lock is broken: growing tokens") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestAnInterruptedReplayRanNoTrials(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	open := with(func(s recipes.Client) recipes.Client {
		return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, _ recipes.Lock) (recipes.Hold, error) {
			cancel()
			return nil, context.Cause(ctx)
		}}
	}, zookeeper.Open)
	if code, _, stderr := zkbench(ctx, open, "replay", madeAudit(t, "lock", 2)); code != exit.Interrupted || !strings.HasSuffix(stderr, "zkbench: interrupted during the replay\n") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

// A file that cannot be used is refused before any session is opened.
func TestABadAuditOpensNoSession(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	for want, args := range map[string][]string{
		"replay needs one file":                      {"replay"},
		"none.json: no such file":                    {"replay", "none.json"},
		"empty: it is not an audit":                  {"replay", empty},
		"no line at or below /other":                 {"replay", "-path", "/other", madeAudit(t, "lock", 2)},
		"/jobs, semaphore: its number of permits":    {"replay", madeAudit(t, "semaphore", 2)},
		"-speed 0: more than 0":                      {"replay", "-speed", "0", "x"},
		"-for -1s: not negative":                     {"replay", "-for", "-1s", "x"},
		"-handoff -1s: not negative":                 {"replay", "-handoff", "-1s", "x"},
		"-sessions 0: at least 1":                    {"replay", "-sessions", "0", "x"},
		"empty: it is not an audit; make":            {"plan", "-from-audit", empty},
		"-at asks records of trials":                 {"plan", "-at", "5", "-from-audit", empty},
		"-growth needs -from-audit":                  {"plan", "-growth", "2", empty},
		"-growth 0: more than 0":                     {"plan", "-growth", "0", "-from-audit", empty},
		"-from-audit reads no records; give replies": {"plan", "-from-audit", empty, empty},
		"servers reply if 4lw.commands.whitelist":    {"plan", "-from-audit", madeAudit(t, "lock", 2), "-from-mntr", empty},
	} {
		sessions := 0
		code, stdout, stderr := zkbench(t.Context(), func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
			sessions++
			return nil, recipes.ErrUnavailable
		}, args...)
		first, _, _ := strings.Cut(stderr, "\n")
		if code != exit.Misuse || !strings.Contains(first, want) || stdout != "" || sessions > 0 {
			t.Errorf("%q: exit code %d, %d sessions\n%s%s; want %q", args, code, sessions, stdout, stderr, want)
		}
	}
}

// A replay says so if it starts its acquisitions late, or if they are not granted.
func TestAReplayThatDoesNotKeepUpSaysSo(t *testing.T) {
	c := over(new(strings.Builder), new(strings.Builder), zookeeper.Open)
	c.check = func(r record.Record) []string { return []string{"late"} }
	code := c.run(t.Context(), []string{"replay", madeAudit(t, "election", 2)})
	if stderr := c.stderr.(*strings.Builder).String(); code != exit.Invalid || !strings.Contains(stderr, "the replay did not keep up at /jobs: late") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestTimesOfSamples(t *testing.T) {
	dir := t.TempDir()
	old := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, name := range []string{"zk1-20260102T150405Z.mntr", "20260102T150406Z", "plain.txt"} {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, []byte("zk_version\t3.4.13\nzk_packets_received\t7\n"), 0o600))
		must.Do(t, os.Chtimes(file, old, old))
	}
	all := must.Get(readSamples([]string{filepath.Join(dir, "zk1-20260102T150405Z.mntr"), filepath.Join(dir, "20260102T150406Z"), filepath.Join(dir, "plain.txt")}))(t)
	for i, want := range []struct {
		server string
		time   time.Time
	}{{filepath.Join(dir, "zk1"), old}, {dir + "/", old.Add(time.Second)}, {dir, old}} {
		if s := all[i]; s.Server != want.server || !s.Time.Equal(want.time) || s.Figures["packets_received"] != 7 {
			t.Errorf("%+v; want %+v", s, want)
		}
	}
}

// TestScheduleOfAReplay: arrivals that were 10 ms apart are played at twice the speed for 12 ms, by
// two sessions. Each hold is shortened by production's handoff.
func TestScheduleOfAReplay(t *testing.T) {
	l := must.Get(readAudit(madeAudit(t, "lock", 5), "/"))(t)
	ms := time.Millisecond
	for _, c := range []struct {
		s    replaySettings
		want []load.Acquisition
	}{
		{replaySettings{speed: 1, sessions: 9}, []load.Acquisition{{Hold: ms}, {At: 10 * ms, Hold: ms, Session: 1}, {At: 20 * ms, Hold: ms, Session: 2}, {At: 30 * ms, Hold: ms, Session: 3}, {At: 40 * ms, Hold: ms, Session: 4}}},
		{replaySettings{speed: 2, sessions: 2, length: 12 * ms, handoff: 600 * time.Microsecond}, []load.Acquisition{{Hold: 400 * time.Microsecond}, {At: 5 * ms, Hold: 400 * time.Microsecond, Session: 1}, {At: 10 * ms, Hold: 400 * time.Microsecond}}},
		{replaySettings{speed: 0.5, sessions: 1, length: 20 * ms, handoff: time.Second}, []load.Acquisition{{}, {At: 20 * ms}}},
	} {
		r := must.Get(c.s.schedule(l))(t)
		p := r.paths[0]
		if !slices.Equal(p.acquisitions, c.want) || len(p.production) != len(c.want) || r.length != c.want[len(c.want)-1].At || r.sessions != min(5, c.s.sessions, max(len(c.want), 1)) {
			t.Errorf("%+v: %+v, %d sessions, %v; want %+v", c.s, p.acquisitions, r.sessions, r.length, c.want)
		}
	}
	// A semaphore, and the time before the other lines begin, are left out.
	early := *l.Paths[0]
	early.Kind, early.Permits, early.Acquisitions = "semaphore", 0, slices.Clone(early.Acquisitions)
	early.Acquisitions[0].At = early.Acquisitions[0].At.Add(-time.Hour)
	l.Others = append(l.Others, &early)
	if r := must.Get(replaySettings{speed: 1, sessions: 9}.schedule(l))(t); len(r.strange) != 1 || r.length != 40*ms {
		t.Errorf("%q, %v", r.strange, r.length)
	}
	file := madeAudit(t, "priority-lock", 1)
	text := strings.Replace(string(must.Get(os.ReadFile(file))(t)), `"znode":"0"`, `"reads":true,"znode":"_c_1-reading-07-0000000000"`, 1)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	r := must.Get(replaySettings{speed: 1, sessions: 1}.schedule(must.Get(readAudit(file, "/"))(t)))(t)
	if p := r.paths[0]; p.recipe != "priority-lock" || !slices.Equal(p.acquisitions, []load.Acquisition{{Hold: ms, Reads: true, Priority: 7}}) {
		t.Errorf("%+v", p)
	}
}
