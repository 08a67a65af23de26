package job

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ExitSignal is added to the number of a signal to get the exit code, as in a shell.
const ExitSignal = 128

// Interruption is the cause of a context that a signal has ended.
type Interruption struct{ Signal os.Signal }

func (i Interruption) Error() string { return "interrupted by " + name(i.Signal) }

// ExitCode returns 128 plus the number of the signal.
func (i Interruption) ExitCode() int {
	n, _ := i.Signal.(syscall.Signal)
	return ExitSignal + int(n)
}

// Relay receives the signals of this process. Before the command starts, a signal ends a
// context. From then on, signals are passed on to the command. SIGTSTP stops the command, and
// then this process.
type Relay struct {
	signals   chan os.Signal
	suspends  chan os.Signal // SIGTSTP
	continues chan os.Signal // SIGCONT
	receiving sync.WaitGroup
	continued atomic.Int64 // when the last SIGCONT was received, in Unix nanoseconds

	starts sync.RWMutex // read-locked while a command is started, so that no command misses SIGTSTP

	mu       sync.Mutex
	cancel   context.CancelCauseFunc
	job      *Job
	beside   map[*Job]bool // of StartBeside
	ran      bool          // a command was started
	early    os.Signal     // the signal that ended the context before a command was started
	starting bool          // the command is being started
	waiting  []os.Signal   // signals that arrived during the start
	passed   []os.Signal   // signals that were passed on to the last command
}

// NewRelay receives signals until Stop. It returns a context that the first signal ends, with
// an Interruption as its cause. Signals that this process inherited as ignored, for example
// from nohup, stay ignored.
func NewRelay(ctx context.Context) (*Relay, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Relay{
		signals: make(chan os.Signal, 16), suspends: make(chan os.Signal, 1), continues: make(chan os.Signal, 1),
		cancel: cancel, beside: map[*Job]bool{},
	}
	for c, signals := range map[chan os.Signal][]os.Signal{r.signals: relayed, r.suspends: suspending, r.continues: continuing} {
		for _, s := range signals {
			if !signal.Ignored(s) {
				signal.Notify(c, s)
			}
		}
	}
	r.receiving.Go(func() { // until Stop
		for s := range r.signals {
			r.take(s)
		}
	})
	r.receiving.Go(func() { // until Stop
		for range r.suspends {
			r.suspend()
			select {
			case <-r.suspends: // it arrived before this process stopped
			default:
			}
		}
	})
	r.receiving.Go(func() { // until Stop
		for range r.continues {
			r.continued.Store(time.Now().UnixNano())
		}
	})
	return r, ctx
}

func (r *Relay) take(s os.Signal) {
	if dropped(s) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for j := range r.beside {
		j.Pass(s)
	}
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

// Start starts the command as [Start] does. Signals that arrive during the start are passed
// on too, because the command may be ready for them before Start returns. A signal that arrived too
// late to end the wait is passed on as well.
//
// After a SIGTSTP the command is continued only if held returns true. Otherwise the caller
// must end it.
func (r *Relay) Start(program string, argv, env []string, life *Lifetime, held func() bool) (*Job, error) {
	r.starts.RLock()
	defer r.starts.RUnlock()
	r.beginStart()
	j, err := Start(program, argv, env, life)
	if err != nil {
		r.pass(nil)
		return nil, err
	}
	j.held = held
	r.pass(j)
	return j, nil
}

// StartBeside is Start for one of several commands, with another stdin. Data that the command
// does not read is dropped. Signals are passed on to the command until remove. The first of them is
// the signal that has ended the context. A later signal that ends processes also ends the context,
// although the command runs.
func (r *Relay) StartBeside(program string, argv, env []string, life *Lifetime, held func() bool, stdin io.Reader) (j *Job, remove func(), err error) {
	r.starts.RLock()
	defer r.starts.RUnlock()
	if j, err = startWith(program, argv, env, life, stdin); err != nil {
		return nil, nil, err
	}
	j.held = held
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beside[j] = true
	if r.early != nil {
		j.Pass(r.early)
	}
	return j, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.beside, j)
	}, nil
}

func (r *Relay) beginStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting = true
}

// pass passes signals on to j from now on. With nil it drops them.
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
	r.early, r.waiting = nil, nil // the next command does not get them
}

func (r *Relay) hand(s os.Signal) {
	r.job.Pass(s)
	r.passed = append(r.passed, s)
}

// Ended reports whether a signal that was passed on has ended the last command, which
// returned code. A hangup counts only if it killed the command, because other commands read
// their configuration again.
func (r *Relay) Ended(code int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.passed, func(s os.Signal) bool {
		return ends(s) && (s != syscall.SIGHUP || code == ExitSignal+int(syscall.SIGHUP))
	})
}

// Interruptible returns a context that the next signal ends. Call it when the command has
// ended: signals are no longer passed on.
func (r *Relay) Interruptible(ctx context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.job, r.ran = nil, false
	return ctx
}

// Stop receives no more signals and ends the context.
func (r *Relay) Stop() {
	for _, c := range []chan os.Signal{r.signals, r.suspends, r.continues} {
		signal.Stop(c)
		close(c)
	}
	r.receiving.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(nil)
}
