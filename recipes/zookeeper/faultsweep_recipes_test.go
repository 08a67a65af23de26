package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// stage is what a case of a recipe's sweep plays on. Everything lies below
// sweepPath.
type stage struct {
	t             *testing.T
	srv           *zkserver.Server
	ctx           context.Context // ends when something hangs
	victim, other recipes.Session
}

// sweep is a scenario of a recipe's fault sweep: what the victim does is done
// once without a fault, and then once for each of its requests and each fault.
type sweep struct {
	name    string
	prepare func(st *stage) // before requests are counted; may be nil
	// act is what the victim does, as far as the fault lets it. After an error of
	// its own making (ErrSessionLost, the cancellation) it gives back what it has
	// with the stage's context.
	act func(ctx context.Context, st *stage) error
	// may are errors that a fault may cause beside the fault's own.
	may []error
	// check looks at the stage when act has returned err, while the victim's
	// session still lives, if it does; may be nil.
	check func(st *stage, err error)
	// left reports whether a node below sweepPath may stay; nil: none.
	left func(path string) bool
}

// runSweeps runs all cases.
func runSweeps(t *testing.T, recipe string, sweeps []sweep) {
	var all []scenario
	for _, s := range sweeps {
		all = append(all, scenario{s.name, s.run})
	}
	sweepFaults(t, recipe, 1, all)
}

// run runs one case.
func (s sweep) run(t *testing.T, at int64, f fault) int64 {
	srv := embedded(t)
	st := &stage{t: t, srv: srv, ctx: bounded(t), victim: open(t, srv), other: open(t, srv)}
	if s.prepare != nil {
		s.prepare(st)
	}
	ctx, cancel := context.WithCancel(st.ctx)
	defer cancel()
	if at > 0 {
		f.may = slices.Concat(f.may, s.may)
	}
	requests := f.strike(srv, st.victim, at, cancel)

	done := make(chan error, 1)
	go func() { done <- s.act(ctx, st) }()
	var err error
	select {
	case err = <-done:
	case <-st.ctx.Done():
		t.Fatal("the victim hangs")
	}
	made := requests.Load()
	if !f.allows(err) {
		t.Errorf("the victim ended with %v", err)
	}
	// One that was cancelled has not waited for its request. The answer to a later one
	// says that the server has carried it out, or never will.
	_, _ = st.victim.Contenders(st.ctx, sweepPath)
	if s.check != nil {
		s.check(st, err)
	}
	if closeErr := st.victim.Close(st.ctx); closeErr != nil && errors.Is(st.victim.Err(), recipes.ErrClosed) {
		t.Errorf("close: %v", closeErr)
	}
	for _, n := range srv.Tree() {
		below := strings.HasPrefix(n.Path, sweepPath+"/")
		if n.Stat.EphemeralOwner == st.victim.ID() || below && n.Stat.EphemeralOwner != st.other.ID() && (s.left == nil || !s.left(n.Path)) {
			t.Errorf("left behind: %s of session %#x", n.Path, n.Stat.EphemeralOwner)
		}
	}
	return made
}

// settled reports a call whose context or connection ended before its outcome
// was known as no failure.
func settled(err error) error {
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return nil
	}
	return err
}

// awaitGone waits until no node below sweepPath belongs to the victim, as long as
// its session lives: what it has given up is deleted in the background.
func (st *stage) awaitGone() {
	st.t.Helper()
	g := must[recipes.Group](st.t)(open(st.t, st.srv).Group(sweepPath, recipes.GroupConfig{}))
	snapshots := must[<-chan []recipes.Member](st.t)(g.Watch(st.ctx))
	for members := range snapshots {
		mine := false
		for _, m := range members {
			mine = mine || m.SessionID == st.victim.ID()
		}
		if !mine {
			return
		}
	}
	st.t.Error("the victim has left a node behind")
}
