package bench

import (
	"context"
	"fmt"
	"runtime"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Run runs one trial: it opens a session for each contender, measures, and
// closes the sessions. An error names the trial; it matches load.ErrBroken if a
// promise of the recipe was broken, or else what the sessions met.
func (e Experiment) Run(ctx context.Context, t Trial) (record.Record, error) {
	r := record.Record{
		Recipe: t.Recipe, Workload: t.Workload, Strategy: t.Strategy, Contenders: t.Contenders,
		Transport: t.Transport.Name, Hold: e.Hold, Procs: runtime.GOMAXPROCS(0),
	}
	if err := e.run(ctx, t, &r); err != nil {
		return record.Record{}, fmt.Errorf("trial %d (%s): %w", t.Number, r.Name(), err)
	}
	return r, nil
}

func (e Experiment) run(ctx context.Context, t Trial, r *record.Record) error {
	watch := watchMemory(t.Transport)
	sessions, err := open(ctx, t.Transport.Open, e.config(t), t.Contenders)
	if err != nil {
		return err
	}
	defer closeAll(ctx, sessions)
	figures := figures{read: e.Figures}
	r.Measurement, err = e.load(t, sessions, func(ctx context.Context) error {
		r.Memory = watch.read(len(sessions))
		return figures.begin(ctx)
	}, figures.end).Run(ctx)
	r.Server = figures.grown
	return err
}

// load returns the load of a trial over its sessions.
func (e Experiment) load(t Trial, sessions []recipes.Session, begin, end func(context.Context) error) load.Load {
	return load.Load{
		Workload: t.Workload, Recipe: t.Recipe, Strategy: t.Strategy, Sessions: sessions,
		Path: fmt.Sprintf("%s/%04d", e.Root, t.Number),
		Hold: e.Hold, Duration: e.Duration, Warmup: e.Warmup,
		Begin: begin, End: end,
	}
}

// config returns the configuration of a trial's sessions.
func (e Experiment) config(t Trial) recipes.Config {
	cfg := e.Session
	if cfg.MaxPacket == 0 {
		cfg.MaxPacket = MaxPacket(t.Contenders)
	}
	return cfg
}

// MaxPacket returns a recipes.Config.MaxPacket, in bytes, for a line of that
// many contenders. A session sets a buffer of that size aside, so a thousand of
// them in one process cannot all have the default of a megabyte; and it must
// hold a listing of the line, at some 60 bytes a contender.
func MaxPacket(contenders int) int { return 64<<10 + 100*contenders }
