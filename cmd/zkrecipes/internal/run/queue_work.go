package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Further variables of the command of queue work.
const (
	elementEnv = "ZKRECIPES_ELEMENT" // the name of the element
	attemptEnv = "ZKRECIPES_ATTEMPT" // how often it was delivered, including this delivery
)

var queueWork = verb.Verb{
	Name: "queue work", Usage: "[flags] PATH -- COMMAND [ARGUMENT...]", New: verb.New[queueWorkVerb],
	Synopsis: "Run a command for each element of a queue",
	Help: `Runs the command for each element of the queue at PATH, with the data on stdin. It
removes the element if the command returns 0, and gives it back if not.

    zkrecipes queue work -parallel 4 -max-deliveries 3 /mail -- ./send
    zkrecipes queue work -argument /thumbnails -- ./resize -size 200

With -argument the data is the command's last argument, and its stdin is empty.
$ZKRECIPES_ELEMENT is the name of the element. $ZKRECIPES_ATTEMPT is how often it was
delivered, from 1. $ZKRECIPES_TOKEN grows with each delivery of an element.
$ZKRECIPES_PATH is PATH, and $ZKRECIPES_ZNODE is the znode of the claim.

With -batch the command gets up to that many elements, which are claimed and removed in
one transaction. Its stdin has one JSON object for each, on a line of its own, with id,
attempt, data, and data_base64 if the data is not text. If the command fails, all of them
are given back. $ZKRECIPES_ELEMENT and $ZKRECIPES_ATTEMPT are not set, and
$ZKRECIPES_ZNODE is the claim of the first.

    zkrecipes queue work -batch 100 /mail -- ./send-all

An element that was given back keeps its place in the queue, and is delivered again.
After a failure the worker pauses; the pause grows with each further failure. With
-max-deliveries, an element that was delivered that many times, and not removed, becomes
a dead letter, which zkrecipes queue dead shows. Deliveries that ended with the session,
by a crash or a loss, count too. All workers must give the same number.

When the claim on an element is lost, another worker may receive the element. So the
command gets TERM, and KILL after -grace. An element may be processed twice, but it is
not lost. While no server answers, the worker waits. It replaces a session that is lost.

zkrecipes passes signals on to the commands that run. After HUP, INT, QUIT or TERM it
receives no more elements, and exits when these commands have ended.

Exit code: 0 after a signal. Otherwise:

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
	batch                int
}

func (v *queueWorkVerb) Flags(f *flag.FlagSet) {
	v.graceFlag(f)
	v.closeFlag(f)
	v.statusFlag(f)
	v.priorities.Flag(f)
	f.BoolVar(&v.argument, "argument", false, helptext.Common("pass the data as the last argument, and nothing on stdin"))
	f.IntVar(&v.parallel, "parallel", 1, helptext.Common("process this `number` of elements at a time"))
	f.IntVar(&v.batch, "batch", 1, helptext.Common("process up to this `number` of elements with one command"))
	f.IntVar(&v.deliveries, "max-deliveries", 0, "give up an element after this `number` of deliveries; 0: never")
}

func (v *queueWorkVerb) Arguments(args []string) error {
	if v.parallel < 1 {
		return fmt.Errorf("-parallel %d: at least 1", v.parallel)
	}
	if v.batch < 1 {
		return fmt.Errorf("-batch %d: at least 1", v.batch)
	}
	if v.batch > 1 && v.argument {
		return errors.New("-batch and -argument exclude each other: the elements of a batch are on stdin")
	}
	return cmp.Or(v.config().Validate(), v.guard.Arguments(args))
}

func (v *queueWorkVerb) config() recipes.QueueConfig {
	return recipes.QueueConfig{MaxDeliveries: v.deliveries}
}

func (v *queueWorkVerb) Run(ctx context.Context, t *verb.Tool) error {
	ctx, end, err := v.begin(ctx, t)
	if err != nil {
		return err
	}
	defer end()
	p := verb.Patience{Failure: "the worker has stopped"}
	err = exit.Coded(verb.Await(ctx, t, p, func(ctx context.Context, s recipes.Client) (none struct{}, err error) {
		v.served.Opened(s)
		q, err := v.priorities.Open(s, v.path, v.config())
		if err != nil {
			return none, err
		}
		return none, v.work(ctx, q)
	}, func(struct{}) error { return nil }))
	if ended, _ := errors.AsType[exit.Error](err); ended.Code > job.ExitSignal {
		return nil // a signal, while no server answered
	}
	return err
}

// work processes elements until a signal arrives or the session is lost.
func (v *queueWorkVerb) work(ctx context.Context, q recipes.Consumer) error {
	g, workers := errgroup.WithContext(ctx)
	for range v.parallel {
		g.Go(func() error { return v.loop(workers, q) })
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// loop processes one element, or batch, after the other.
func (v *queueWorkVerb) loop(ctx context.Context, q recipes.Consumer) error {
	var backoff verb.Backoff
	for {
		received, err := q.ReceiveMany(ctx, v.batch)
		if err != nil {
			return err
		}
		begun := time.Now()
		failed := v.process(q, received)
		if failed == nil {
			backoff = verb.Backoff{}
			continue
		}
		if exit.Code(failed, exit.Failed) == exit.Cannot {
			return failed
		}
		backoff.Next(time.Since(begun))
		backoff.Pause(ctx)
	}
}

// process runs the command for elements that were received together, and acknowledges them. Its error
// is the reason why some were given back.
func (v *queueWorkVerb) process(q recipes.Consumer, received []recipes.Delivery) error {
	if failed := v.handle(received); failed != nil {
		for _, d := range received {
			v.giveBack(d, failed)
		}
		return failed
	}
	acking, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	_ = q.AckMany(acking, received...)
	var failed error
	for _, d := range received {
		if err := d.Ack(acking); err != nil { // the result of this one
			failed = fmt.Errorf("the command was successful, but the element could not be removed: %w", err)
			v.giveBack(d, failed)
			continue
		}
		v.t.Event(v.event("acknowledged", d, ""), "")
	}
	return failed
}

// handle runs the command. Its error is the reason to deliver the elements again. It has the code
// exit.Cannot if the command can be started for no element, for example because it is being
// upgraded. A worker that continued would soon turn every element into a dead letter.
func (v *queueWorkVerb) handle(received []recipes.Delivery) error {
	for _, d := range received {
		defer v.served.Granted(v.path, d)()
	}
	lost, stop := anyLost(received)
	defer stop()
	argv, env, stdin, err := v.command(received)
	if err != nil {
		return err
	}
	j, remove, err := v.relay.StartBeside(v.program, argv, env, v.life, func() bool { return loss(received) == nil }, stdin)
	unfit := v.argument && (errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.EINVAL)) // data that no argument may be
	switch {
	case unfit:
		return fmt.Errorf("command %s: %w", v.argv[0], err)
	case err != nil:
		return exit.With(exit.Cannot, "command %s: %w", v.argv[0], err)
	}
	defer remove()
	defer v.reportDenied(j)()
	select { // after a signal too, without a time limit: the claims are held
	case <-j.Exited():
	case <-lost:
	}
	if err := loss(received); err != nil {
		j.End(v.grace, func(bool) {}, nil)
		return fmt.Errorf("the claim was lost: %w", err)
	}
	if code := j.ExitCode(); code != 0 {
		return fmt.Errorf("the command has ended with exit code %d", code)
	}
	return nil
}

// command returns the arguments, the variables and the stdin of the command.
func (v *queueWorkVerb) command(received []recipes.Delivery) (argv, env []string, stdin io.Reader, err error) {
	first := received[0]
	env = []string{
		tokenEnv + "=" + strconv.FormatInt(int64(first.Token()), 10), znodeEnv + "=" + first.Znode(), pathEnv + "=" + v.path,
	}
	if v.batch > 1 {
		var lines bytes.Buffer
		encoder := json.NewEncoder(&lines)
		for _, d := range received {
			err = cmp.Or(err, encoder.Encode(struct {
				verb.Element
				Attempt int `json:"attempt"`
			}{verb.ElementInJSON(d.Element()), d.Attempt()}))
		}
		return v.argv, env, &lines, err
	}
	env = append(env, elementEnv+"="+string(first.Element().ID), attemptEnv+"="+strconv.Itoa(first.Attempt()))
	data := string(first.Element().Data)
	if v.argument {
		return append(v.argv[:len(v.argv):len(v.argv)], data), env, strings.NewReader(""), nil
	}
	return v.argv, env, strings.NewReader(data), nil
}

// loss returns why the claim of one of the deliveries was lost, or nil.
func loss(received []recipes.Delivery) error {
	for _, d := range received {
		if err := d.Err(); err != nil {
			return err
		}
	}
	return nil
}

// anyLost returns a channel that is closed when the claim of one of the deliveries is lost. The caller
// must call stop.
func anyLost(received []recipes.Delivery) (lost <-chan struct{}, stop func()) {
	if len(received) == 1 {
		return received[0].Done(), func() {}
	}
	any, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var watches sync.WaitGroup
	for _, d := range received {
		done := d.Done()
		watches.Go(func() {
			select {
			case <-done:
				once.Do(func() { close(any) })
			case <-ended:
			}
		})
	}
	return any, func() { close(ended); watches.Wait() }
}

// giveBack gives an element back, to be delivered again or to become a dead letter, and
// reports that.
func (v *queueWorkVerb) giveBack(d recipes.Delivery, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	what, text := "returned", "it goes back to the queue"
	switch err := d.Return(ctx); {
	case err != nil: // for example after a loss, when the server gives it back
		what, text = "unreturned", "it may be delivered again"
	case v.deliveries > 0 && d.Attempt() >= v.deliveries:
		what, text = "dead", fmt.Sprintf("it is a dead letter; zkrecipes queue dead %s shows it", v.path)
	}
	v.t.Event(v.event(what, d, why.Error()), fmt.Sprintf("element %s of %s, attempt %d: %v; %s", d.Element().ID, v.path, d.Attempt(), why, text))
}

func (v *queueWorkVerb) event(what string, d recipes.Delivery, cause string) verb.Event {
	return verb.Event{Event: what, Path: v.path, Element: string(d.Element().ID), Token: int64(d.Token()), Cause: cause}
}
