package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// holding is a command that has run under a grant.
type holding struct {
	*job.Job
	code  int             // the command's
	lost  bool            // the hold was lost while it ran
	ended bool            // a signal has ended it
	ran   time.Duration   // for so long
	after context.Context // ends with the next signal
}

// gone waits until nothing is left of what the command has started, and reports false
// if something is after so long.
func (h *holding) gone(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-h.Gone():
		return true
	case <-h.after.Done():
		return false
	case <-timer.C:
		return false
	}
}

// hold runs the command under a grant and gives the grant back. The holding is nil if
// the command did not run.
func (g *guard) hold(h grant, t *verb.Tool, r *job.Relay, program string) (*holding, error) {
	lost := h.Done() // asks to be told, from now on
	env := []string{tokenEnv + "=" + strconv.FormatInt(int64(h.Token()), 10), znodeEnv + "=" + h.Znode(), pathEnv + "=" + g.path}
	if s, ok := h.Grant.(recipes.SlotHold); ok {
		env = append(env, slotEnv+"="+strconv.Itoa(s.Slot()))
	}
	j, err := r.Start(program, g.argv, env, g.life)
	if err != nil {
		g.release(h, t)
		return nil, exit.With(exit.Cannot, "command %s: %w", g.argv[0], err)
	}
	begun := time.Now()
	if h.started != nil {
		ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
		defer cancel()
		if err := h.started(ctx); err != nil && h.Err() == nil {
			t.Event(verb.Event{Event: "unacknowledged", Path: g.path, Cause: err.Error()},
				fmt.Sprintf("the leader could not be acknowledged: %v", err))
		}
	}
	asked, told := false, false // that it is asked for; that it is lost
	select {
	case <-j.Exited():
		if j.Told() { // by a signal that was passed on
			j.Await(g.grace, g.killing(t))
		}
	case <-lost:
		told = true
		t.Event(verb.Event{Event: "lost", Path: g.path, Token: int64(h.Token()), Cause: fmt.Sprint(h.Err())},
			fmt.Sprintf("lost %s, ending the command: %v", g.path, h.Err()))
		j.End(g.grace, g.killing(t))
	case <-h.asked:
		asked = true
		t.Event(verb.Event{Event: "asked", Path: g.path, Token: int64(h.Token())},
			fmt.Sprintf("another client asks for %s: ending the command", g.path))
		j.End(g.grace, g.killing(t))
	}
	after := r.Interruptible(context.Background()) // a signal is no longer the command's
	status := j.ExitCode()
	t.Event(verb.Event{Event: "exited", Path: g.path, Code: &status}, "")
	held := &holding{Job: j, code: status, lost: h.Err() != nil, ended: r.Ended(status), ran: time.Since(begun), after: after}
	return held, g.end(h, t, held, told, asked)
}

// end releases the hold and returns the exit code. told means that the loss was printed,
// asked that another client asked for the hold.
func (g *guard) end(h grant, t *verb.Tool, held *holding, told, asked bool) error {
	switch {
	case told && !t.JSON: // people have read it
		return exit.Silently(exit.Lost)
	case held.lost:
		return exit.With(exit.Lost, "the hold on %s was lost while the command ran: %w", g.path, h.Err())
	case h.together:
		return g.leave(held.after, h, t, held.code)
	}
	g.release(h, t)
	if asked {
		return exit.With(exit.Lost, "the command was ended because another client asked for %s", g.path)
	}
	return exit.Silently(held.code)
}

// killing says that the command, or what it has started, is killed after -grace.
func (g *guard) killing(t *verb.Tool) func(exited bool) {
	return func(exited bool) {
		what := "the command has not ended in %v, killing it"
		if exited {
			what = "what the command has started has not ended in %v, killing the process group"
		}
		t.Event(verb.Event{Event: "killed", Path: g.path}, fmt.Sprintf(what, g.grace))
	}
}

func (g *guard) release(h grant, t *verb.Tool) {
	release(h, t, g.path, g.path+" could not be given back at once, it is free")
}

// release gives back what was granted at path. failure says what is the case otherwise.
func release(h grant, t *verb.Tool, path, failure string) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := h.giveBack(ctx); err != nil {
		t.Event(verb.Event{Event: "unreleased", Path: path, Cause: err.Error()},
			fmt.Sprintf("%s at the session's timeout at the latest: %v", failure, err))
		return
	}
	t.Event(verb.Event{Event: "released", Path: path}, "")
}

// leave gives back what all who have it give back together. It takes as long as
// they do, unless a signal comes.
func (g *guard) leave(ctx context.Context, h grant, t *verb.Tool, status int) error {
	err := h.giveBack(ctx)
	if err == nil {
		t.Event(verb.Event{Event: "released", Path: g.path}, "")
		return exit.Silently(status)
	}
	if interrupted, ok := errors.AsType[job.Interruption](context.Cause(ctx)); ok {
		return exit.With(interrupted.ExitCode(), "%w before all had left %s", interrupted, g.path)
	}
	return exit.With(exit.Lost, "the command has ended, but whether all others have is not known: %w", err)
}
