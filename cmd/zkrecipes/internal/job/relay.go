package job

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// ExitSignal is what a shell adds to the number of a signal for the exit code.
const ExitSignal = 128

// Interruption is the cause of a context that a signal has ended.
type Interruption struct{ Signal os.Signal }

func (i Interruption) Error() string { return "interrupted by " + name(i.Signal) }

// ExitCode is 128 and the signal's number.
func (i Interruption) ExitCode() int {
	n, _ := i.Signal.(syscall.Signal)
	return ExitSignal + int(n)
}

// Relay takes the signals of this process. Until there is a command they end a
// context, and then they are the command's.
type Relay struct {
	signals chan os.Signal
	done    chan struct{} // closed when nothing takes signals any more

	mu       sync.Mutex
	cancel   context.CancelCauseFunc
	job      *Job
	ran      bool        // a command was started
	early    os.Signal   // it has ended the context before that
	starting bool        // the command is being started
	waiting  []os.Signal // what came then
	passed   []os.Signal // to the command
}

// NewRelay takes signals until Stop, and returns a context that the first one
// ends, with an Interruption as its cause. Signals that this process was started to
// ignore, as under nohup, stay ignored.
func NewRelay(ctx context.Context) (*Relay, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Relay{signals: make(chan os.Signal, 16), done: make(chan struct{}), cancel: cancel}
	for _, s := range relayed {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}
	go func() { // until Stop
		defer close(r.done)
		for s := range r.signals {
			r.take(s)
		}
	}()
	return r, ctx
}

func (r *Relay) take(s os.Signal) {
	if dropped(s) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.job != nil:
		r.hand(s)
	case r.starting:
		r.waiting = append(r.waiting, s)
	case !r.ran && ends(s):
		r.early = s
		r.cancel(Interruption{s})
	}
}

// Start starts the command as [Start] does. Signals are the command's from the
// beginning: it may be ready for them before this process knows that it runs. So is
// one that came too late to end the wait for it.
func (r *Relay) Start(program string, argv, env []string, life *Lifetime) (*Job, error) {
	r.begin()
	j, err := Start(program, argv, env, life)
	if err != nil {
		r.pass(nil)
		return nil, err
	}
	r.pass(j)
	return j, nil
}

func (r *Relay) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting = true
}

// pass has signals passed on to j from now on; nil drops them.
func (r *Relay) pass(j *Job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job, r.ran, r.starting, r.passed = j, true, false, nil
	if j == nil {
		return
	}
	if r.early != nil {
		r.hand(r.early)
	}
	for _, s := range r.waiting {
		r.hand(s)
	}
	r.early, r.waiting = nil, nil // another command does not get them
}

func (r *Relay) hand(s os.Signal) {
	r.job.pass(s)
	r.passed = append(r.passed, s)
}

// Ended reports whether a signal that was passed on has ended the last command, which
// returned code. A hangup means the end only to a command that has ended by it: others
// read their configuration again.
func (r *Relay) Ended(code int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.passed, func(s os.Signal) bool {
		return ends(s) && (s != syscall.SIGHUP || code == ExitSignal+int(syscall.SIGHUP))
	})
}

// Interruptible returns a context that the next signal ends: signals are no longer
// the command's, which has ended.
func (r *Relay) Interruptible(ctx context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.job, r.ran = nil, false
	return ctx
}

// Stop takes no more signals and ends the context.
func (r *Relay) Stop() {
	signal.Stop(r.signals)
	close(r.signals)
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(nil)
}
