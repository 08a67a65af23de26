package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// survivor is a session as a host has it whose plugins die or are replaced: a process serves
// it, and when that has gone another one resumes it. It keeps the rules of PROTOCOL.md. Its
// grants, and those who wait for one, are resumed in each new process.
type survivor struct {
	recipes.Client // of the first process
	world          *World
	mistake        mistake
	chance         *stream
	processes      int           // that came after the first
	moving         chan struct{} // holds one element while one process follows another

	mu       sync.Mutex
	now      *process // nil while none serves
	ready    chan struct{}
	deadline time.Time // while none serves
	held     []*kept
	err      error // why it is over
	over     chan struct{}
}

// resumes opens survivors whose host makes that mistake.
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

// lost says why the session is over. It needs mu.
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

// end ends the session, if it is not over, for those who wait for a process.
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

// present waits until a process serves the session, and has resumed all.
func (v *survivor) present(ctx context.Context) (*process, error) {
	for {
		v.mu.Lock()
		p, ready, err := v.now, v.ready, v.lost()
		v.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", recipes.ErrSessionLost, err)
		}
		if p != nil && closed(ready) { // before ctx: of two cases that are ready, select takes any
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

// serves reports whether the process is the one that serves the session.
func (v *survivor) serves(p *process) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now == p
}

// tookUp checks that a grant is that of before. It knows what no process can see. A
// znode that is newer than the start of the take-up may have come after it had looked.
func (w *World) tookUp(who string, k *kept, newest int64) {
	for _, n := range w.server.Tree() {
		if n.Path == k.Znode() && n.Stat.Czxid != int64(k.Token()) && n.Stat.Czxid <= newest {
			w.fail(who, "resumed %s with token %#x, which is another znode's, %#x", k.Znode(), int64(k.Token()), n.Stat.Czxid)
		}
	}
}

// newestZnode is the czxid of the newest of all znodes.
func (w *World) newestZnode() int64 {
	newest := int64(0)
	for _, n := range w.server.Tree() {
		newest = max(newest, n.Stat.Czxid)
	}
	return newest
}

// czxidOf is the mistake of a take-up that compares nothing: it finds whatever is there.
func (w *World) czxidOf(znode string) recipes.Token {
	i := slices.IndexFunc(w.server.Tree(), func(n zkserver.Node) bool { return n.Path == znode })
	if i < 0 {
		return 1
	}
	return recipes.Token(w.server.Tree()[i].Stat.Czxid)
}
