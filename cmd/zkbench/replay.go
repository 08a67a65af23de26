package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/traffic"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/validity"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/sessions"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const replayHelp = `Usage: zkbench replay [flags] FILE

Plays the acquisitions of a production system on other servers, and shows the waits of both
side by side. FILE is the output of zkrecipes audit -holds -format=json.

Examples:

	zkrecipes audit -holds -format=json / /var/lib/zookeeper >audit.json
	zkbench replay -servers staging1:2181,staging2:2181 -for 10m audit.json
	zkbench replay -ensemble 3 -speed 2 audit.json

Rules:

	Times     Each acquisition begins as long after the first one as in production, and
	          holds as long, whether or not earlier ones were granted. With -speed N it
	          begins after an Nth of that time, and holds as long as before.
	Paths     Locks, elections, semaphores, shared and priority locks, at their paths below
	          a path of zkbench's own. Nothing else is changed. As after zkbench run, only
	          empty container znodes stay, which servers delete. A semaphore whose number
	          of permits is not in the log is left out, as Curator's.
	Sessions  One for each session of production, but at most -sessions.
	Waits     Those of production are from the log: from the creation of the contender's
	          znode to the end of the hold before it. Those of the replay are what a client
	          sees, from the scheduled time to the return of the call. They contain two
	          messages to a server and a write more.
	Holds     A hold in the log contains the handoff of production. The replay has its own,
	          so it holds longer by that. Give what a handoff takes in production with
	          -handoff, and each hold is shorter by that time. The last line of the output
	          has the holds of both, those of the replay until the release has returned.
	End       Acquisitions that are not granted within the time of the replay after the
	          last one, or within 10 seconds, are cancelled.
	Checks    Every grant is checked: as in zkbench run, or that no more hold together than
	          the permits or the readers allow.

Exit codes:

	0    all was played
	1    the replay failed: a server, a session or an output
	2    the flags or the file cannot be used; nothing was sent to any server
	3    a lock broke its promise
	4    the replay did not keep up: zkbench started late, or grants are missing
	130  interrupted`

type replaySettings struct {
	settings
	path     string
	speed    float64
	length   time.Duration
	handoff  time.Duration
	sessions int
	strategy recipes.Strategy
}

func (c command) replayVerb(ctx context.Context, args []string) error {
	s := replaySettings{settings: defaults(), strategy: recipes.Handoff}
	f := flag.NewFlagSet("zkbench replay", flag.ContinueOnError)
	f.StringVar(&s.path, "path", "/", helptext.Common("play the lines at and below this `path`"))
	f.Float64Var(&s.speed, "speed", 1, helptext.Common("let arrivals come this many `times` as fast"))
	f.DurationVar(&s.length, "for", 0, helptext.Common("play only what begins within this `time` of the replay; 0 is all"))
	f.DurationVar(&s.handoff, "handoff", 0, "what a handoff takes in production; each hold is shorter by this `time`")
	f.IntVar(&s.sessions, "sessions", 200, "the largest `number` of sessions")
	f.Func("strategy", "how contenders wait: herd, predecessor, handoff (default handoff)", func(v string) (err error) {
		s.strategy, err = parseStrategy(v)
		return err
	})
	f.DurationVar(&s.sessionTimeout, "session-timeout", 30*time.Second, "session timeout to request")
	f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	s.Flags.Add(f)
	if err := c.parse(f, replayHelp, args); err != nil {
		return err
	}
	for _, mistake := range []mistake{
		{f.NArg() != 1, "replay needs one file; make it with: zkrecipes audit -holds -format=json PATH LOG"},
		{!(s.speed > 0), fmt.Sprintf("-speed %v: more than 0", s.speed)},
		{s.length < 0, fmt.Sprintf("-for %v: not negative", s.length)},
		{s.handoff < 0, fmt.Sprintf("-handoff %v: not negative", s.handoff)},
		{s.sessions < 1, fmt.Sprintf("-sessions %d: at least 1", s.sessions)},
		{s.sessionTimeout < time.Second, fmt.Sprintf("-session-timeout %v: at least 1s", s.sessionTimeout)},
	} {
		if mistake.made {
			return exit.Usage(errors.New(mistake.what))
		}
	}
	if err := s.Flags.Check(given(f)); err != nil {
		return exit.Usage(err)
	}
	l, err := readAudit(f.Arg(0), s.path)
	if err != nil {
		return err
	}
	r, err := s.schedule(l)
	if err != nil {
		return exit.Usage(fmt.Errorf("%s: %w", f.Arg(0), err))
	}
	return c.replay(ctx, s, r)
}

// replay is a schedule for all paths.
type replay struct {
	paths    []*replayed
	sessions int
	length   time.Duration // until the last acquisition
	strange  []string      // why lines are left out
}

type replayed struct {
	name         string
	recipe       load.Recipe
	permits      int // of a semaphore
	acquisitions []load.Acquisition
	production   []float64     // waits in nanoseconds
	held         time.Duration // all holds of production
	load.Measurement
}

func (s replaySettings) schedule(l *traffic.Log) (*replay, error) {
	r := &replay{}
	var paths []*traffic.Path
	var first time.Time // of the acquisitions that are played
	for _, p := range slices.Concat(l.Paths, l.Others) {
		why := ""
		if len(p.Acquisitions) == 0 {
			continue
		}
		if p.Kind == string(recipes.KindSemaphore) && p.Permits == 0 {
			why = "its number of permits is not in the log"
		} else if slices.ContainsFunc(paths, func(other *traffic.Path) bool { return other.Name == p.Name }) {
			why = "another recipe has the same path"
		} else if err := recipes.ValidatePath("/zkbench" + strings.TrimSuffix(p.Name, "/")); err != nil {
			return nil, err
		}
		if why != "" {
			r.strange = append(r.strange, fmt.Sprintf("%s, %s: %s", p.Name, p.Kind, why))
			continue
		}
		paths = append(paths, p)
		if at := p.Acquisitions[0].At; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	sessions := map[string]int{}
	for _, p := range paths {
		one := &replayed{name: p.Name, recipe: load.Recipe(p.Kind), permits: p.Permits}
		for _, a := range p.Acquisitions {
			at := time.Duration(float64(a.At.Sub(first)) / s.speed)
			if s.length > 0 && at > s.length {
				break
			}
			number, ok := sessions[a.Session]
			if !ok {
				number = len(sessions)
				sessions[a.Session] = number
			}
			one.acquisitions = append(one.acquisitions, load.Acquisition{At: at, Hold: max(0, a.Hold-s.handoff), Session: number % s.sessions, Reads: a.Reads, Priority: a.Priority})
			one.production, one.held = append(one.production, float64(a.Wait)), one.held+a.Hold
			r.length = max(r.length, at)
		}
		if len(one.acquisitions) > 0 {
			r.paths = append(r.paths, one)
		}
	}
	r.sessions = min(len(sessions), s.sessions)
	if len(r.paths) == 0 {
		return nil, errors.New(strings.Join(append([]string{"it has no acquisition to play"}, r.strange...), "; "))
	}
	return r, nil
}

func (c command) replay(ctx context.Context, s replaySettings, r *replay) (err error) {
	c.quiet = s.quiet
	end := &exit.Cleanup{}
	defer end.Run(&err)
	s.Contenders, s.Workloads = []int{r.sessions}, []load.Workload{load.Open}
	srv, via, err := c.reach(ctx, s.settings, end)
	if err != nil {
		return err
	}
	opened, err := sessions.Open(ctx, via[0].Open, func(int) recipes.SessionConfig { return srv.Session }, r.sessions, func() {})
	if err != nil {
		return err
	}
	end.Add(func() error { sessions.Close(ctx, opened); return nil })
	for _, strange := range r.strange {
		c.say("left out: %s", strange)
	}
	total := 0
	for _, p := range r.paths {
		total += len(p.acquisitions)
	}
	c.say("%s of %s by %s within %v on %s", english.Count(total, "acquisition"), english.Count(len(r.paths), "path"), english.Count(r.sessions, "session"), r.length.Round(time.Millisecond), describeServers(srv.About))
	root := s.experiment(via, srv.Session).Root
	start := time.Now()
	group, gctx := errgroup.WithContext(ctx)
	for _, p := range r.paths {
		group.Go(func() (err error) {
			l := load.Load{Recipe: p.recipe, Permits: p.permits, Strategy: s.strategy, Sessions: opened, Path: root + strings.TrimSuffix(p.name, "/")}
			p.Measurement, err = l.Replay(gctx, start, p.acquisitions, max(10*time.Second, r.length))
			return err
		})
	}
	err = group.Wait()
	switch {
	case errors.Is(err, load.ErrOverloaded):
		c.warn("the replay did not keep up: %v", err)
		return exit.Answer(exit.Invalid)
	case err != nil && ctx.Err() != nil && !errors.Is(err, load.ErrBroken):
		return &exit.Interruption{Why: errors.New("during the replay")}
	case err != nil:
		return err
	}
	return c.compareWaits(s, r, srv.About)
}

func (c command) compareWaits(s replaySettings, r *replay, about record.Server) error {
	check := validity.For(s.Inside()).Check
	if c.check != nil {
		check = c.check
	}
	all := &replayed{name: "all", Measurement: load.Measurement{Wait: histogram.New(), Service: histogram.New()}}
	rows := [][]string{{"path", "recipe", "acquisitions", "production p50", "p99", "worst", "replay p50", "p99", "worst"}}
	behind := false
	for _, p := range r.paths {
		all.production, all.acquisitions = append(all.production, p.production...), append(all.acquisitions, p.acquisitions...)
		all.Wait.Merge(p.Wait)
		all.Service.Merge(p.Service)
		all.held += p.held
		rows = append(rows, p.waitsRow())
		late := check(record.Record{Measurement: p.Measurement})
		if p.Unfinished > 0 {
			late = append(late, fmt.Sprintf("%d of %s not granted in time", p.Unfinished, english.Count(len(p.acquisitions), "acquisition")))
		}
		if len(late) > 0 {
			behind = true
			c.warn("the replay did not keep up at %s: %s", p.name, strings.Join(late, "; "))
		}
	}
	rows = append(rows, all.waitsRow())
	text := fmt.Sprintf("waits in production, and in the replay on %s, at %g times the speed\n%sheld: %s in production and %s in the replay, in the mean\n",
		report.Servers(about), s.speed, table.Align(rows, 2), unit.Nanoseconds(float64(all.held)/float64(len(all.production))), unit.Nanoseconds(all.Service.Mean()))
	if behind {
		return c.answer(text, exit.Invalid)
	}
	return c.answer(text, exit.OK)
}

func (p *replayed) waitsRow() []string {
	slices.Sort(p.production)
	then := func(q float64) string { return unit.Nanoseconds(stat.Quantile(q, stat.Empirical, p.production, nil)) }
	now := func(h *hdrhistogram.Histogram, q float64) string {
		return unit.Nanoseconds(float64(h.ValueAtPercentile(q)))
	}
	return []string{p.name, string(p.recipe), fmt.Sprint(len(p.acquisitions)), then(0.5), then(0.99), then(1), now(p.Wait, 50), now(p.Wait, 99), unit.Nanoseconds(float64(p.Wait.Max()))}
}
