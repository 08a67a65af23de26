package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// runVerb is zkbench run.
func (c command) runVerb(ctx context.Context, args []string) (err error) {
	s, err := c.parseSettings(args)
	if err != nil {
		return err
	}
	out, err := createOutput(s.out)
	if err != nil {
		return usageError{err}
	}
	defer out.discard()
	end := &cleanup{}
	defer end.run(&err)
	srv, err := startServer(ctx, s, end)
	if err != nil {
		return err
	}
	session := recipes.Config{Servers: srv.addrs, SessionTimeout: s.sessionTimeout}
	transports, err := c.launch(ctx, s, session, end)
	if err != nil {
		return err
	}
	e := s.experiment(transports, session)
	if err := e.Validate(); err != nil {
		return usageError{err}
	}
	c.say("%d trials on %s, seed %d", len(e.Trials()), place(srv.about), e.Seed)
	err = c.measure(ctx, e, record.NewWriter(c.results(out), record.Here(srv.about)))
	if interrupted := (*interruption)(nil); err == nil || errors.As(err, &interrupted) && interrupted.done > 0 {
		err = errors.Join(err, out.commit())
	}
	return err
}

// experiment returns what the flags describe.
func (s settings) experiment(transports []bench.Transport, session recipes.Config) bench.Experiment {
	return bench.Experiment{
		Recipes: s.recipes.values, Workloads: s.workloads.values, Strategies: s.strategies.values,
		Contenders: s.contenders.values, Transports: transports,
		Count: s.count, Seed: s.seed, Hold: s.hold, Duration: s.duration, Warmup: s.warmup,
		Session: session, Root: freshRoot(),
	}
}

// freshRoot returns a path that no other run has.
func freshRoot() string {
	return fmt.Sprintf("/zkbench/%s-%08x", time.Now().UTC().Format("20060102T150405"), rand.Uint32())
}

// interruption is the end of a run that was told to end. The zero value is one
// that came before the first trial.
type interruption struct{ done, trials int }

func (i *interruption) Error() string {
	if i.trials == 0 {
		return "before the first trial"
	}
	return fmt.Sprintf("after %d of %d trials", i.done, i.trials)
}

// measure runs the trials, writes each result when it is there, and in the end a
// table of them all, however the run ends.
func (c command) measure(ctx context.Context, e bench.Experiment, w *record.Writer) (err error) {
	trials := e.Trials()
	var records []record.Record
	progress := newProgress(c.stderr, len(trials))
	defer func() {
		progress.end()
		err = errors.Join(err, record.Table(c.stderr, records))
	}()
	for _, trial := range trials {
		r, err := e.Run(ctx, trial)
		if err != nil && ctx.Err() != nil && !errors.Is(err, load.ErrBroken) {
			return &interruption{len(records), len(trials)}
		}
		if err != nil {
			return err
		}
		records = append(records, r)
		progress.pause()
		if err := w.Write(r); err != nil {
			return err
		}
		progress.step()
	}
	return nil
}

// results is where results are written: stdout, and the file if there is one.
func (c command) results(out *output) io.Writer {
	if out == nil {
		return c.stdout
	}
	return io.MultiWriter(out, c.stdout)
}

func (c command) say(format string, args ...any) {
	fmt.Fprintf(c.stderr, "zkbench: "+format+"\n", args...)
}

// place describes the servers in a few words.
func place(s record.Server) string {
	version := s.Version
	if version == "" {
		version = "of unknown version"
	}
	if s.Mode == "embedded" {
		return fmt.Sprintf("the embedded server (%s); for figures of a real one, see -ensemble and -servers", version)
	}
	return fmt.Sprintf("%d ZooKeeper server(s) %s", s.Servers, version)
}
