package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// movable is what a session offers to the process that takes it up.
type movable interface {
	recipes.Session
	ResumeTicket() []byte
	KnownContact() time.Time
	Identified() bool
	Kept(znode string) bool
	DropRest(context.Context) error
}

// process serves a survivor, until it dies.
type process struct {
	session movable
	host    *host
}

// survivor is a session as a host has it whose plugins die: a process serves it, and when
// that has died another one resumes it. It keeps the rules of PROTOCOL.md. Its grants, and
// those who wait for one, are taken up in each new process.
type survivor struct {
	recipes.Session // of the first process
	world           *World
	mistake         mistake
	chance          *stream
	deaths          int
	moving          chan struct{} // holds one element while one process follows another

	mu       sync.Mutex
	now      *process // nil while none serves
	ready    chan struct{}
	deadline time.Time // while none serves
	held     []*kept
	err      error // why it is over
	over     chan struct{}
}

// mistake is one that a host can make.
type mistake int

const (
	none mistake = iota
	unreaped
	anyCzxid
	otherIdentity
)

// resumes opens survivors whose host makes that mistake.
func resumes(m mistake) opener {
	return func(ctx context.Context, h *host) (recipes.Session, error) {
		s, err := openDirectly(ctx, h)
		if err != nil {
			return nil, err
		}
		v := &survivor{Session: s, world: h.world, mistake: m, chance: newStream(h.world.seed, h.name+" deaths"), now: &process{s.(movable), h}, moving: make(chan struct{}, 1), ready: make(chan struct{}), over: make(chan struct{})}
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

// present waits until a process serves the session, and has taken up all.
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

// kill has the process end, and reaps it: what it has sent may still arrive, and it sends
// nothing any more.
func (p *process) kill() {
	p.host.mu.Lock()
	p.host.dead = true
	p.host.mu.Unlock()
	p.host.close()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.session.Close(ended)
}

// replace has the process die, and another one resume the session.
func (v *survivor) replace(c *client) {
	v.moving <- struct{}{}
	defer func() { <-v.moving }()
	life, _ := c.present()
	v.mu.Lock()
	old, over := v.now, v.lost() != nil
	v.mu.Unlock()
	if over || life.Err() != nil {
		return
	}
	v.deaths++
	h, ok := c.move(old.host, fmt.Sprintf("%s+%d", old.host.name, v.deaths))
	if !ok {
		return // the machine has died
	}
	v.mu.Lock()
	ticket, contact := old.session.ResumeTicket(), old.session.KnownContact()
	v.now, v.ready = nil, make(chan struct{})
	v.deadline = contact.Add(sessionTimeout - sessionTimeout/20)
	v.mu.Unlock()
	c.world.fault(c.name, "process dies", "session %#x", v.ID())
	if v.mistake == unreaped {
		old.freeze(v.chance.about(2 * time.Second))
	} else {
		old.kill()
	}
	if v.mistake == otherIdentity {
		ticket = withoutIdentity(ticket)
	}
	_ = sleep(life, v.chance.about(100*time.Millisecond))
	if err := v.resume(life, c, h, ticket, contact); err != nil {
		c.note("not resumed: %v", err)
		v.end(err)
	}
}

// freeze is the mistake of a host that does not reap: the process stands still, and then
// closes the session, as one does whose host has gone.
func (p *process) freeze(d time.Duration) {
	p.host.stall(both, d)
	time.AfterFunc(d, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.session.Close(ctx)
	})
}

// resume has a process on h take up the session and what it held.
func (v *survivor) resume(ctx context.Context, c *client, h *host, ticket []byte, contact time.Time) error {
	var p *process
	for p == nil {
		s, err := zookeeper.ResumeWith(h.Dial)(ctx, sessionConfig, ticket, contact)
		if err != nil {
			if ctx.Err() != nil || v.Err() != nil || !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			_ = sleep(ctx, 20*time.Millisecond)
			continue
		}
		p = &process{s.(movable), h}
	}
	v.mu.Lock()
	v.now = p
	held := slices.Clone(v.held)
	v.mu.Unlock()
	c.note("session %#x is resumed", v.ID())
	var takingUp sync.WaitGroup
	for _, k := range held {
		takingUp.Go(func() { k.takeUp(ctx, c, p) })
	}
	takingUp.Wait()
	for {
		err := p.session.DropRest(ctx)
		if err == nil {
			break
		}
		if p.session.Err() != nil || ctx.Err() != nil {
			return err
		}
		_ = sleep(ctx, 20*time.Millisecond)
	}
	c.note("session %#x goes on", v.ID())
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.ready)
	return nil
}

// move gives the client's next process a network of its own, on the same machine.
func (c *client) move(old *host, name string) (*host, bool) {
	h := newHost(c.world, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	old.mu.Lock()
	defer old.mu.Unlock()
	if c.host != old || old.dead {
		return nil, false
	}
	h.cut, c.host = old.cut, h
	return h, true
}

// replaceProcesses has the processes of one client die, until faults cease.
func (w *World) replaceProcesses(c *client) {
	s := newStream(w.seed, c.name+" process deaths")
	for sleep(w.calm, s.about(4*time.Second)) == nil {
		c.mu.Lock()
		v, ok := c.opened.(*survivor)
		c.mu.Unlock()
		if !ok {
			continue
		}
		if s.chance(40) { // with answers on their way
			_, h := c.present()
			length := s.about(sessionTimeout / 8)
			h.stall(replies, length)
			_ = sleep(w.calm, length/2)
		}
		v.replace(c)
	}
}

// tookUp checks that a grant is that of before. It knows what no process can see. A
// znode that is newer than the start of the take-up may have come after it had looked.
func (w *World) tookUp(who string, k *kept, newest int64) {
	for _, n := range w.server.Tree() {
		if n.Path == k.Znode() && n.Stat.Czxid != int64(k.Token()) && n.Stat.Czxid <= newest {
			w.fail(who, "took up %s with token %#x, which is another znode's, %#x", k.Znode(), int64(k.Token()), n.Stat.Czxid)
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
