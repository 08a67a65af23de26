package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type holding struct {
	*job.Job
	code  int             // the command's exit code
	lost  bool            // the hold was lost while it ran
	ended bool            // a signal has ended it
	ran   time.Duration   // how long it ran
	after context.Context // ends with the next signal
}

// gone waits, for most at most, until all processes of the command have ended, and reports
// whether they have.
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

// hold runs the command under a grant and then gives the grant back. The result is nil if the
// command did not run.
func (g *guard) hold(h grant) (*holding, error) {
	lost := h.Done() // before the command starts: the first call sets the watch on the znode
	env := []string{tokenEnv + "=" + strconv.FormatInt(int64(h.Token()), 10), znodeEnv + "=" + h.Znode(), pathEnv + "=" + g.path}
	os.Unsetenv(slotEnv) // it may come from an outer zkrecipes lock
	os.Unsetenv(tokensEnv)
	if s, ok := h.Grant.(recipes.SlotHold); ok {
		env = append(env, slotEnv+"="+strconv.Itoa(s.Slot()))
	}
	if all, ok := h.Grant.(recipes.Holds); ok {
		tokens, _ := json.Marshal(all.Tokens()) // a map of numbers has no error
		env = append(env, tokensEnv+"="+string(tokens))
	}
	j, err := g.relay.Start(g.program, g.argv, env, g.life, func() bool { return h.Err() == nil })
	if err != nil {
		g.release(h)
		return nil, exit.With(exit.Cannot, "command %s: %w", g.argv[0], err)
	}
	begun := time.Now()
	if h.started != nil {
		ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
		defer cancel()
		if err := h.started(ctx); err != nil && h.Err() == nil {
			g.t.Event(verb.Event{Event: "unacknowledged", Path: g.path, Cause: err.Error()},
				fmt.Sprintf("the leader could not be acknowledged: %v", err))
		}
	}
	defer g.reportDenied(j)()
	if g.warning != nil {
		defer recipes.OnDanger(h, g.timeoutGranted/3, func() {
			g.t.Event(verb.Event{Event: "danger", Path: g.path, Token: int64(h.Token())},
				fmt.Sprintf("no server answers: %s is lost within %v", g.path, time.Until(h.ValidUntil()).Round(time.Millisecond)))
			j.Pass(g.warning)
		})()
	}
	var overdue <-chan time.Time
	if g.maxHold > 0 {
		timer := time.NewTimer(g.maxHold)
		defer timer.Stop()
		overdue = timer.C
	}
	var leave <-chan struct{}
	if g.abandon {
		leave = lost
	}
	why, text := "", "" // the command was ended, other than by a signal
	select {
	case <-j.Exited():
		if j.Signaled() && !j.Await(g.grace, g.killing(), leave) {
			return nil, g.abandoned(h)
		}
	case <-lost:
		why, text = "lost", fmt.Sprintf("lost %s, ending the command: %v", g.path, h.Err())
	case <-overdue:
		why, text = "overdue", fmt.Sprintf("the command has held %s for %v, ending it", g.path, g.maxHold)
	case <-h.asked:
		why, text = "asked", fmt.Sprintf("another client asks for %s: ending the command", g.path)
	}
	if why != "" {
		event := verb.Event{Event: why, Path: g.path, Token: int64(h.Token())}
		if why == "lost" {
			event.Cause = fmt.Sprint(h.Err())
		}
		g.t.Event(event, text)
		if !j.End(g.grace, g.killing(), leave) {
			return nil, g.abandoned(h)
		}
	}
	after := g.relay.Interruptible(context.Background()) // signals no longer go to the command
	status := j.ExitCode()
	g.t.Event(verb.Event{Event: "exited", Path: g.path, Code: &status}, "")
	held := &holding{Job: j, code: status, lost: h.Err() != nil, ended: g.relay.Ended(status), ran: time.Since(begun), after: after}
	return held, g.end(h, held, why)
}

// abandoned is the error after a loss, if the command cannot be ended and zkrecipes does not
// wait for it.
func (g *guard) abandoned(h grant) error {
	return exit.With(exit.Lost, "the hold on %s was lost, and the command still runs: %w", g.path, h.Err())
}

// reportDenied reports, until the returned function is called, that the command cannot be
// signalled.
func (g *guard) reportDenied(j *job.Job) (stop func()) {
	stopped := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		select {
		case <-j.Denied():
		case <-stopped:
			select {
			case <-j.Denied(): // both have happened
			default:
				return
			}
		}
		g.t.Event(verb.Event{Event: "denied", Path: g.path},
			fmt.Sprintf("the command cannot be signalled, because it belongs to another user: nothing ends it when %s is lost; run zkrecipes itself as that user, such as sudo zkrecipes", g.path))
	})
	return func() {
		close(stopped)
		reporting.Wait()
	}
}

// end releases the hold and returns the exit code. why is the reason for which the command was
// ended, as in its event, or "".
func (g *guard) end(h grant, held *holding, why string) error {
	switch {
	case why == "lost" && !g.t.JSON: // JSON gets an object with the exit code too
		return exit.Silently(exit.Lost)
	case held.lost:
		return exit.With(exit.Lost, "the hold on %s was lost while the command ran: %w", g.path, h.Err())
	case h.together:
		return g.leave(held.after, h, held.code)
	}
	var uncounted error
	if h.count != nil && held.code == 0 && why == "" {
		ctx, stop := recipes.WithHold(held.after, h) // without a time limit: a success that is not recorded is repeated
		defer stop()
		if uncounted = h.count(ctx); uncounted != nil {
			uncounted = cmp.Or(h.Err(), context.Cause(ctx), uncounted)
		}
	}
	if errors.Is(uncounted, recipes.ErrNotHeld) {
		return exit.With(exit.Lost, "the command has succeeded, but may run again in this period: the hold on %s was lost: %w", g.path, uncounted)
	}
	if rest := g.minHold - held.ran; rest > 0 && why == "" {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.Done():
		case <-held.after.Done(): // a signal
		}
	}
	g.release(h)
	switch {
	case why == "asked":
		return exit.With(exit.Lost, "the command was ended because another client asked for %s", g.path)
	case why == "overdue":
		return exit.With(exit.Lost, "the command was ended because it had held %s for %v", g.path, g.maxHold)
	case uncounted != nil:
		return exit.With(exit.Own, "the command has succeeded, but may run again in this period: %w", uncounted)
	}
	return exit.Silently(held.code)
}

// killing returns a function that reports that processes of the command are killed after
// -grace.
func (g *guard) killing() func(exited bool) {
	return func(exited bool) {
		text := "the command has not ended within %v, killing it"
		if exited {
			text = "processes of the command have not ended within %v, killing the process group"
		}
		g.t.Event(verb.Event{Event: "killed", Path: g.path}, fmt.Sprintf(text, g.grace))
	}
}

func (g *guard) release(h grant) {
	release(h, g.t, g.path, g.path+" could not be released at once; it is free")
}

// release gives the grant at path back. failure begins the text of an error; the session
// timeout follows.
func release(h grant, t *verb.Tool, path, failure string) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := h.giveBack(ctx); err != nil {
		t.Event(verb.Event{Event: "unreleased", Path: path, Cause: err.Error()},
			fmt.Sprintf("%s at the session timeout at the latest: %v", failure, err))
		return
	}
	t.Event(verb.Event{Event: "released", Path: path}, "")
}

// leave leaves a double barrier. It waits for all other members, unless a signal arrives.
func (g *guard) leave(ctx context.Context, h grant, status int) error {
	err := h.giveBack(ctx)
	if err == nil {
		g.t.Event(verb.Event{Event: "released", Path: g.path}, "")
		return exit.Silently(status)
	}
	if interrupted, ok := errors.AsType[job.Interruption](context.Cause(ctx)); ok {
		return exit.With(interrupted.ExitCode(), "%w before all had left %s", interrupted, g.path)
	}
	return exit.With(exit.Lost, "the command has ended, but it is unknown whether all others have: %w", err)
}
