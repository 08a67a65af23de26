package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// survivor is a session that outlives plugin processes. One process serves it at a time. When that
// one ends, another one resumes the session, its grants and its waiting contenders, by the rules of
// PROTOCOL.md.
type survivor struct {
	recipes.Client // of the first process
	world          *World
	mistake        mistake
	chance         *stream
	processes      int           // number of processes after the first
	moving         chan struct{} // has an element while a process is replaced

	mu       sync.Mutex
	now      *process // nil while no process serves the session
	ready    chan struct{}
	deadline time.Time // of the session, while now is nil
	held     []*kept
	err      error // why it has ended
	over     chan struct{}
}

// resumes opens survivors whose host makes the mistake m.
func resumes(m mistake) opener {
	return func(ctx context.Context, h *host) (recipes.Client, error) {
		s, err := openDirectly(ctx, h)
		if err != nil {
			return nil, err
		}
		v := &survivor{Client: s, world: h.world, mistake: m, chance: newStream(h.world.seed, h.name+" deaths"), now: &process{s.(movable), h}, moving: make(chan struct{}, 1), ready: make(chan struct{}), over: make(chan struct{})}
		close(v.ready)
		return v, nil
	}
}

func (v *survivor) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost()
}

// lost returns why the session has ended, or nil. The caller holds mu.
func (v *survivor) lost() error {
	switch {
	case v.err != nil:
		return v.err
	case v.now != nil:
		return v.now.session.Err()
	case !time.Now().Before(v.deadline):
		return recipes.ErrDeadline
	}
	return nil
}

// end ends the session, and the calls that wait for a process.
func (v *survivor) end(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		v.err = err
		close(v.over)
	}
}

func (v *survivor) Close(ctx context.Context) error {
	v.end(recipes.ErrClosed)
	v.moving <- struct{}{}
	defer func() { <-v.moving }()
	v.mu.Lock()
	p := v.now
	v.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.session.Close(ctx)
}

// awaitProcess waits until a process serves the session and has resumed everything.
func (v *survivor) awaitProcess(ctx context.Context) (*process, error) {
	for {
		v.mu.Lock()
		p, ready, err := v.now, v.ready, v.lost()
		v.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", recipes.ErrSessionLost, err)
		}
		if p != nil && closed(ready) { // checked before ctx: select chooses at random among ready cases
			return p, nil
		}
		select {
		case <-ready:
		case <-v.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// serves reports whether the process still serves the session.
func (v *survivor) serves(p *process) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now == p
}

// checkResumed checks, in the leader's state, that a resumed grant has the same znode. A znode that
// is newer than the start of the resume may have been created after the process had checked it.
func (w *World) checkResumed(who string, k *kept, newest int64) {
	for _, n := range w.server.Tree() {
		token := n.Stat.Czxid
		if strings.HasPrefix(string(n.Data), "zkrecipes: slot=") {
			token = n.Stat.Mzxid // of the claim
		}
		if n.Path == k.Znode() && token != int64(k.Token()) && n.Stat.Czxid <= newest {
			w.fail(who, "resumed %s with token %#x, which is another znode's, %#x", k.Znode(), int64(k.Token()), token)
		}
	}
}

// newestZnode returns the czxid of the newest znode.
func (w *World) newestZnode() int64 {
	newest := int64(0)
	for _, n := range w.server.Tree() {
		newest = max(newest, n.Stat.Czxid)
	}
	return newest
}

// czxidOf returns the czxid of the znode that has this name now. A resume that uses it makes the
// mistake of comparing nothing.
func (w *World) czxidOf(znode string) recipes.Token {
	i := slices.IndexFunc(w.server.Tree(), func(n zkserver.Node) bool { return n.Path == znode })
	if i < 0 {
		return 1
	}
	return recipes.Token(w.server.Tree()[i].Stat.Czxid)
}

// kind is a recipe whose grants can be resumed.
type kind struct {
	path          string
	permits       int
	shared        bool
	unqueued      bool // it has no wait queue
	unwrapped     bool // see scenario
	enter         func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error)
	resumeWaiting func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error)
	resume        func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error)
	release       func(ctx context.Context, g recipes.Grant) error
}

// kindOf makes a kind from the methods of a recipe.
func kindOf[R any, G recipes.Grant](path string, permits int, shared bool, of func(recipes.Client, func(recipes.Place)) (R, error), enter func(R, context.Context) (G, error), release func(G, context.Context) error) kind {
	asGrant := func(g G, err error) (recipes.Grant, error) {
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	return kind{
		path: path, permits: permits, shared: shared,
		enter: func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error) {
			r, err := of(s, joined)
			if err != nil {
				return nil, err
			}
			return asGrant(enter(r, ctx))
		},
		resumeWaiting: func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				ResumeWaiting(context.Context, string, bool) (G, error)
			}).ResumeWaiting(ctx, znode, false))
		},
		resume: func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				Resume(context.Context, string, recipes.Token) (G, error)
			}).Resume(ctx, k.znode, token))
		},
		release: func(ctx context.Context, g recipes.Grant) error { return release(g.(G), ctx) },
	}
}

// resumed returns a scenario in which other processes resume the clients' sessions. The host makes
// the mistake m.
func resumed(name string, m mistake, pick func(*client) kind) scenario {
	what := pick(nil)
	sc := scenario{name: name, open: resumes(m), moves: true, unwrapped: what.unwrapped, begin: func(*World) game { return sessionTurns(pick) }}
	if what.permits == 1 {
		sc.paths = []string{what.path}
	}
	if !what.unqueued {
		sc.line = what.path
	}
	return sc
}

// choose returns one of the choices at random, or the first if c is nil.
func choose[T any](c *client, choices ...T) T {
	if c == nil {
		return choices[0]
	}
	return pick(c.chance, choices...)
}

// sessionTurns takes a turn with the kind that pick returns. Half of the turns have two contenders
// at the same time.
func sessionTurns(pick func(*client) kind) game {
	one := func(ctx context.Context, c *client, s recipes.Client) error {
		wait, cancel := c.patience(ctx)
		defer cancel()
		what := pick(c)
		k, err := s.(*survivor).acquire(wait, what)
		// A name has no wait queue. So during faults the client retries a taken name, and after
		// them such a turn counts: otherwise some clients would starve.
		for errors.Is(err, recipes.ErrNodeExists) && c.world.calm.Err() == nil && c.step(wait, c.chance.about(50*time.Millisecond)) == nil {
			k, err = s.(*survivor).acquire(wait, what)
		}
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if err != nil {
			return err
		}
		g := &grant{client: c, session: s, path: what.path, Grant: k, shared: what.shared, journaled: what.permits == 1}
		return c.hold(ctx, g, what.permits, k.release)
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		var second error
		var both sync.WaitGroup
		if c.chance.chance(50) {
			both.Go(func() { second = one(ctx, c, s) })
		}
		first := one(ctx, c, s)
		both.Wait()
		if second != nil && !expected(second) {
			return second
		}
		return first
	}}
}
