package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// kept is a grant or a waiting contender of a survivor. It outlives the process that serves it.
type kept struct {
	v       *survivor
	kind    kind
	waiting context.Context // context of the caller that waits
	results chan result     // from each process that serves it

	// Under v.mu:
	znode   string
	token   recipes.Token
	grant   recipes.Grant // of process; nil while it waits
	process *process
	lost    error
}

// result is what a call for a grant has returned in a process.
type result struct {
	process *process
	grant   recipes.Grant
	err     error
}

func (k *kept) Token() recipes.Token  { k.v.mu.Lock(); defer k.v.mu.Unlock(); return k.token }
func (k *kept) Znode() string         { k.v.mu.Lock(); defer k.v.mu.Unlock(); return k.znode }
func (k *kept) Done() <-chan struct{} { return k.v.over }

// ValidUntil implements recipes.Grant. Between two processes nothing is proved.
func (k *kept) ValidUntil() time.Time {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	if k.lost != nil || k.grant == nil || k.process != k.v.now {
		return time.Time{}
	}
	return k.grant.ValidUntil()
}

// Err reports a loss as a host does. While no process serves the session, the grant is held until
// the session's deadline.
func (k *kept) Err() error {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	switch {
	case k.lost != nil:
		return k.lost
	case k.v.lost() != nil:
		return fmt.Errorf("%w: %w", recipes.ErrNotHeld, k.v.lost())
	case k.process == k.v.now:
		k.lost = k.grant.Err() // a loss is final
	}
	return k.lost
}

// acquire waits for a grant of the kind. The contender keeps its place across processes.
func (v *survivor) acquire(ctx context.Context, what kind) (*kept, error) {
	k := &kept{v: v, kind: what, waiting: ctx, results: make(chan result, 64)}
	v.mu.Lock()
	v.held = append(v.held, k)
	v.mu.Unlock()
	for {
		p, err := v.awaitProcess(ctx)
		if err != nil {
			v.forget(k)
			return nil, err
		}
		go func() {
			g, err := what.enter(ctx, p.session, func(place recipes.Place) { k.joined(p, place) })
			k.results <- result{p, g, err}
		}()
		for known := true; known; {
			select {
			case r := <-k.results:
				switch k.accept(r) {
				case accepted:
					return k, nil
				case refused:
					v.forget(k)
					return nil, r.err
				case unknown:
					known = false
				}
			case <-v.over:
				v.forget(k)
				return nil, recipes.ErrSessionLost
			}
		}
	}
}

// joined records the contender's znode, if the process still serves the session.
func (k *kept) joined(p *process, place recipes.Place) {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	if k.v.now == p {
		k.znode = place.Znode
	}
}

// verdict says what a result means for the caller that waits.
type verdict int

const (
	stillWaiting verdict = iota // the process has ended; the next one resumes the znode
	unknown                     // the process has ended, perhaps after it had joined
	accepted
	refused
)

// accept takes the result, if its process still serves the session.
func (k *kept) accept(r result) verdict {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	switch {
	case k.v.now != r.process && k.znode == "":
		return unknown
	case k.v.now != r.process:
		return stillWaiting
	case r.err != nil:
		return refused
	}
	k.grant, k.process, k.znode, k.token = r.grant, r.process, r.grant.Znode(), r.grant.Token()
	return accepted
}

func (v *survivor) forget(k *kept) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, other := range v.held {
		if other == k {
			v.held = append(v.held[:i:i], v.held[i+1:]...)
			return
		}
	}
}

// resume resumes the grant, or the place in the wait queue, in a new process.
func (k *kept) resume(ctx context.Context, c *client, p *process) {
	k.v.mu.Lock()
	znode, token, held, lost := k.znode, k.token, k.grant != nil, k.lost
	k.v.mu.Unlock()
	switch {
	case lost != nil || znode == "":
		return
	case !held:
		k.resumePlace(ctx, p, znode)
		return
	}
	if k.v.mistake == anyCzxid {
		token = c.world.czxidOf(znode)
	}
	newest := c.world.newestZnode()
	var g recipes.Grant
	err := error(recipes.ErrUnavailable)
	for unsettled(err) && ctx.Err() == nil && p.session.Err() == nil {
		if g, err = k.kind.resume(ctx, p.session, k, token); unsettled(err) {
			_ = sleep(ctx, 20*time.Millisecond)
		}
	}
	c.note("resumed %s: %v", znode, err)
	k.v.mu.Lock()
	if err == nil {
		k.grant, k.process = g, p
	} else {
		k.lost = err
	}
	k.v.mu.Unlock()
	if err == nil {
		c.world.checkResumed(c.name, k, newest)
	} else if !expected(err) {
		c.world.fail(c.name, "resume %s: %v", znode, err)
	}
}

// unsettled reports whether the outcome of a resume is unknown, so that it must be repeated.
func unsettled(err error) bool {
	return errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrUnknownOutcome)
}

// resumePlace resumes a waiting contender. It returns when the process has found its znode, or when
// the contender no longer waits.
func (k *kept) resumePlace(ctx context.Context, p *process, znode string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g, err := k.kind.resumeWaiting(k.waiting, p.session, znode)
		k.results <- result{p, g, err}
	}()
	for !p.session.WasResumed(znode) && ctx.Err() == nil {
		again := time.NewTimer(time.Millisecond)
		select {
		case <-ended:
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// Write implements recipes.Grant. If the process ends during the call, the outcome is unknown.
func (k *kept) Write(ctx context.Context, ops ...recipes.Op) error {
	p, g, err := k.awaitGrant(ctx)
	if err != nil {
		return err
	}
	err = g.Write(ctx, ops...)
	if err != nil && !k.v.serves(p) {
		return fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, err)
	}
	return err
}

// awaitGrant waits for a process that has resumed the grant.
func (k *kept) awaitGrant(ctx context.Context) (*process, recipes.Grant, error) {
	p, err := k.v.awaitProcess(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", recipes.ErrNotHeld, err)
	}
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	if k.lost != nil {
		return nil, nil, fmt.Errorf("%w: %w", recipes.ErrNotHeld, k.lost)
	}
	return p, k.grant, nil
}

// release releases the grant. If the process ends during the call, it calls the next one.
func (k *kept) release(ctx context.Context) error {
	defer k.v.forget(k)
	for {
		p, g, err := k.awaitGrant(ctx)
		switch {
		case errors.Is(err, recipes.ErrRemoved):
			return nil
		case err != nil:
			return err
		}
		err = k.kind.release(ctx, g)
		if k.v.serves(p) || ctx.Err() != nil {
			return err
		}
	}
}
