package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Variables that the command of queue work gets besides those of guard.
const (
	elementEnv = "ZKRECIPES_ELEMENT" // the name of the element
	attemptEnv = "ZKRECIPES_ATTEMPT" // how often it has been delivered, this time included
)

var queueWork = verb.Verb{
	Name: "queue work", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[queueWorkVerb],
	Synopsis: "Run a command for each element of a queue",
	Help: `Runs the command for each element of the queue at PATH, with the data on its stdin. It
removes the element when the command returns 0, and otherwise gives it back.

    zkrecipes queue work -parallel 4 -max-deliveries 3 /mail -- ./send
    zkrecipes queue work -argument /thumbnails -- ./resize -size 200

With -argument the data are the command's last argument, and its stdin is empty. The
command finds the name of the element in $ZKRECIPES_ELEMENT and in $ZKRECIPES_ATTEMPT
how often it was delivered, from 1. $ZKRECIPES_TOKEN grows with each delivery of an
element; $ZKRECIPES_PATH is PATH and $ZKRECIPES_ZNODE the znode of the claim.

An element that was given back is delivered again, from its old place. After a failure
the worker rests for a moment, and longer after each further one. With
-max-deliveries, an element that has failed so often becomes a dead letter, which
zkrecipes queue dead shows. All workers have to give the same number.

When its claim on an element is lost, the command is sent TERM, and KILL after -grace:
another worker may have the element. So an element may be worked on twice, but it is
not lost. While no server answers, the worker waits; a session that is lost is replaced.

A signal is passed on to the commands that run. When they have ended, the worker ends.

Exit code: 0 when a signal has ended it. Otherwise:

    1    zkrecipes failed, for example because it may not read PATH
    2    wrong usage or configuration; nothing was done
    123  ZooKeeper refused the credentials
    126  the command cannot be run
    127  the command was not found`,
}

type queueWorkVerb struct {
	guard
	priorities           verb.Priorities
	argument             bool
	parallel, deliveries int
}

func (v *queueWorkVerb) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &v.grace, "grace", 5*time.Second, "kill the command if it has not ended this `duration` after its TERM")
	v.closeFlag(f)
	v.priorities.Flag(f)
	f.BoolVar(&v.argument, "argument", false, "give the data as the last argument, and nothing on stdin")
	f.IntVar(&v.parallel, "parallel", 1, "work on this `number` of elements at a time")
	f.IntVar(&v.deliveries, "max-deliveries", 0, "give up an element that was delivered this `number` of times; 0: never")
}

func (v *queueWorkVerb) Arguments(args []string) error {
	if v.parallel < 1 {
		return fmt.Errorf("-parallel %d: at least 1", v.parallel)
	}
	return cmp.Or(v.config().Validate(), v.guard.Arguments(args))
}

func (v *queueWorkVerb) config() recipes.QueueConfig {
	return recipes.QueueConfig{MaxDeliveries: v.deliveries}
}

func (v *queueWorkVerb) Run(ctx context.Context, t *verb.Tool) error {
	program, err := lookUp(v.argv[0])
	if err != nil {
		return err
	}
	p := verb.Patience{Failure: "no element was worked on any more"}
	end, err := v.live(t)
	if err != nil {
		return err
	}
	defer end()
	open := func(s recipes.Client) (recipes.Consumer, error) { return v.priorities.Open(s, v.path, v.config()) }
	err = verb.Wait(ctx, t, p, open, func(ctx context.Context, q recipes.Consumer) error {
		return v.work(ctx, q, &worker{queueWorkVerb: v, t: t, program: program})
	})
	if ended, _ := errors.AsType[exit.Error](err); ended.Code > job.ExitSignal {
		return nil // while no server answered
	}
	return err
}

// work works on elements until a signal comes, or the session is lost.
func (v *queueWorkVerb) work(ctx context.Context, q recipes.Consumer, w *worker) error {
	g, workers := errgroup.WithContext(ctx)
	for range v.parallel {
		g.Go(func() error { return w.loop(workers, q) })
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// worker works on one element after the other.
type worker struct {
	*queueWorkVerb
	t       *verb.Tool
	program string
}

func (w *worker) loop(ctx context.Context, q recipes.Consumer) error {
	var rests verb.Rests
	for {
		d, err := q.Receive(ctx)
		if err != nil {
			return err
		}
		begun := time.Now()
		failed := w.handle(ctx, d)
		if failed == nil {
			rests.Reset()
			continue
		}
		w.giveBack(d, failed)
		rests.Next(time.Since(begun))
		rests.Rest(ctx)
	}
}

// handle runs the command for one element, and acknowledges it. An error says why it
// has to be delivered again.
func (w *worker) handle(ctx context.Context, d recipes.Delivery) error {
	lost := d.Done()
	argv, stdin := w.argv, io.Reader(strings.NewReader(string(d.Element().Data)))
	if w.argument {
		argv, stdin = append(argv[:len(argv):len(argv)], string(d.Element().Data)), strings.NewReader("")
	}
	j, err := job.StartWith(w.program, argv, []string{
		tokenEnv + "=" + strconv.FormatInt(int64(d.Token()), 10), znodeEnv + "=" + d.Znode(), pathEnv + "=" + w.path,
		elementEnv + "=" + string(d.Element().ID), attemptEnv + "=" + strconv.Itoa(d.Attempt()),
	}, w.life, stdin)
	if err != nil {
		return fmt.Errorf("command %s: %w", w.argv[0], err)
	}
	select {
	case <-j.Exited():
	case <-lost:
	case <-ctx.Done():
		if interrupted, ok := errors.AsType[job.Interruption](context.Cause(ctx)); ok {
			j.Pass(interrupted.Signal)
		}
		select { // it has the time that it needs, if it still has the element
		case <-j.Exited():
		case <-lost:
		}
	}
	if d.Err() != nil {
		j.End(w.grace, func(bool) {})
		return fmt.Errorf("the claim was lost: %w", d.Err())
	}
	if code := j.ExitCode(); code != 0 {
		return fmt.Errorf("the command has ended with exit code %d", code)
	}
	acking, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := d.Ack(acking); err != nil {
		return fmt.Errorf("the command was successful, but the element could not be removed: %w", err)
	}
	w.t.Event(w.event("acknowledged", d, ""), "")
	return nil
}

// giveBack has an element delivered again, or makes it a dead letter, and says so.
func (w *worker) giveBack(d recipes.Delivery, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	what, text := "returned", "it goes back to the queue"
	switch err := d.Return(ctx); {
	case err != nil: // as after a loss, when the server does it
		what, text = "unreturned", "it may be delivered again"
	case w.deliveries > 0 && d.Attempt() >= w.deliveries:
		what, text = "dead", fmt.Sprintf("it is a dead letter; zkrecipes queue dead %s shows it", w.path)
	}
	w.t.Event(w.event(what, d, why.Error()), fmt.Sprintf("element %s of %s, attempt %d: %v; %s", d.Element().ID, w.path, d.Attempt(), why, text))
}

func (w *worker) event(what string, d recipes.Delivery, cause string) verb.Event {
	return verb.Event{Event: what, Path: w.path, Element: string(d.Element().ID), Token: int64(d.Token()), Cause: cause}
}
