package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// hold runs the command under a grant and gives the grant back.
func (g *guard) hold(h grant, out *output, r *relay, program string) exitError {
	lost := h.Done() // asks to be told, from now on
	r.starting()
	c, err := startChild(program, g.argv, []string{
		tokenEnv + "=" + strconv.FormatInt(int64(h.Token()), 10), znodeEnv + "=" + h.Znode(), pathEnv + "=" + g.path,
	})
	if err != nil {
		r.to(nil)
		g.release(h, out)
		return exitError{exitCannot, fmt.Errorf("command %s: %w", g.argv[0], err)}
	}
	r.to(c)
	if h.started != nil {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if err := h.started(ctx); err != nil && h.Err() == nil {
			out.event(event{Event: "unacknowledged", Path: g.path, Cause: err.Error()},
				fmt.Sprintf("the leader could not be acknowledged: %v", err))
		}
	}
	asked := false
	select {
	case <-c.exited:
		if c.told.Load() { // by a signal that was passed on
			g.await(c, out)
		}
	case <-lost:
		out.event(event{Event: "lost", Path: g.path, Token: int64(h.Token()), Cause: fmt.Sprint(h.Err())},
			fmt.Sprintf("lost %s, ending the command: %v", g.path, h.Err()))
		g.end(c, out)
	case <-h.asked:
		asked = true
		out.event(event{Event: "asked", Path: g.path, Token: int64(h.Token())},
			fmt.Sprintf("somebody asks for %s, ending the command", g.path))
		g.end(c, out)
	}
	leaving := r.again(context.Background()) // a signal is no longer the command's
	status := c.exitCode()
	out.event(event{Event: "exited", Path: g.path, Code: &status}, "")
	switch err := h.Err(); {
	case err != nil:
		return exitError{exitLost, fmt.Errorf("the hold on %s was lost while the command ran: %w", g.path, err)}
	case h.together:
		return g.leave(leaving, h, out, status)
	}
	g.release(h, out)
	if asked {
		return exitError{exitLost, fmt.Errorf("the command was ended because somebody asked for %s", g.path)}
	}
	return exitError{code: status}
}

// end ends a command that may not go on.
func (g *guard) end(c *child, out *output) {
	c.terminate()
	g.await(c, out)
}

// await waits for the end of a command that was told to end, and of what it has
// started, and kills them after -grace.
func (g *guard) await(c *child, out *output) {
	grace := time.NewTimer(g.grace)
	defer grace.Stop()
	select {
	case <-c.gone:
	case <-grace.C:
		what := "the command has not ended in %v, killing it"
		select {
		case <-c.exited:
			what = "what the command has started has not ended in %v, killing the process group"
		default:
		}
		out.event(event{Event: "killed", Path: g.path}, fmt.Sprintf(what, g.grace))
		c.kill()
		<-c.exited
	}
}

func (g *guard) release(h grant, out *output) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := h.giveBack(ctx); err != nil {
		out.event(event{Event: "unreleased", Path: g.path, Cause: err.Error()},
			fmt.Sprintf("%s could not be given back at once, it is free at the session's timeout at the latest: %v", g.path, err))
		return
	}
	out.event(event{Event: "released", Path: g.path}, "")
}

// leave gives back what all who have it give back together. It takes as long as
// they do, unless a signal comes.
func (g *guard) leave(ctx context.Context, h grant, out *output, status int) exitError {
	err := h.giveBack(ctx)
	var interrupted interruption
	switch {
	case err == nil:
		out.event(event{Event: "released", Path: g.path}, "")
		return exitError{code: status}
	case errors.As(context.Cause(ctx), &interrupted):
		return exitError{exitSignal + interrupted.number(), fmt.Errorf("%w before all had left %s", interrupted, g.path)}
	}
	return exitError{exitLost, fmt.Errorf("the command has ended, but whether all others have is not known: %w", err)}
}
