package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruption is the signal that ended a wait.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return fmt.Sprintf("interrupted by %v", i.signal) }

func (i interruption) number() int {
	n, _ := i.signal.(syscall.Signal)
	return int(n)
}

// relay takes the signals of this process. Until there is a command they end
// the wait for it, and then they are the command's.
type relay struct {
	signals chan os.Signal
	done    chan struct{}
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	child   *child
	ran     bool
	early   os.Signal   // ended the wait
	start   bool        // the command is being started
	waiting []os.Signal // came then
}

// newRelay begins to take signals. Those that whoever started this process has
// it ignore, as nohup does, stay ignored.
func newRelay() *relay {
	r := &relay{signals: make(chan os.Signal, 16), done: make(chan struct{}), cancel: func(error) {}}
	for _, s := range relayed {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}
	return r
}

// interruptible returns a context that the next signal ends, as long as there
// was no command, and begins to relay.
func (r *relay) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, r.cancel = context.WithCancelCause(ctx)
	go func() { // until stop
		defer close(r.done)
		for s := range r.signals {
			r.take(s)
		}
	}()
	return ctx, func() { r.cancel(nil) }
}

func (r *relay) take(s os.Signal) {
	if dropped(s) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.child != nil:
		r.child.pass(s)
	case r.start:
		r.waiting = append(r.waiting, s)
	case !r.ran && ends(s):
		r.early = s
		r.cancel(interruption{s})
	}
}

// starting says that the signals from now on are those of the command that is
// about to start: it may know how to take them before to is called.
func (r *relay) starting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = true
}

// to says whose signals they are from now on; nil is nobody's, when the command
// has ended. One that came too late to end the wait is the command's too.
func (r *relay) to(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.child, r.ran, r.start = c, true, false
	if c == nil {
		return
	}
	if r.early != nil {
		c.pass(r.early)
	}
	for _, s := range r.waiting {
		c.pass(s)
	}
}

// again is interruptible after the command has ended.
func (r *relay) again(ctx context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.child, r.ran = nil, false
	return ctx
}

func (r *relay) stop() {
	signal.Stop(r.signals)
	close(r.signals)
	<-r.done
}
