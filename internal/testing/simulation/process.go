package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// movable is what a session offers to the process that takes it up.
type movable interface {
	recipes.Client
	ResumeTicket() []byte
	Contact() time.Time
	WasResumed(znode string) bool
	Detach(context.Context) error
	DropRest(context.Context) error
}

// process serves a survivor, until it dies or is replaced.
type process struct {
	session movable
	host    *host
}

// mistake is one that a host or its plugin can make.
type mistake int

const (
	none          mistake = iota
	unreaped              // the process that died was not waited for
	anyCzxid              // whatever has the znode's name is resumed
	closesInstead         // who is replaced closes the session
	servesOn              // who is replaced does not let go of it
	contactAnew           // the deadline counts from the resume
)

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

// letGoTimeout bounds how long a process lets go of its session, as a host does.
const letGoTimeout = time.Second

// letGo has the process let go of its session, and end.
func (p *process) letGo() error {
	ctx, cancel := context.WithTimeout(context.Background(), letGoTimeout)
	defer cancel()
	err := p.session.Detach(ctx)
	p.kill()
	return err
}

// closeAfter is the mistake of a process that serves the session until it ends, and closes
// it then, as one does whose host has gone.
func (p *process) closeAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.session.Close(ctx)
	})
}

// dies ends the process of a host that resumes what it had.
func (v *survivor) dies(p *process) {
	if v.mistake != unreaped {
		p.kill()
		return
	}
	d := v.chance.about(2 * time.Second)
	p.host.stall(both, d)
	p.closeAfter(d)
}

// leaves ends a process that another one replaces. It fails if the session is over.
func (v *survivor) leaves(p *process) error {
	switch v.mistake {
	case closesInstead:
		p.closeAfter(0)
	case servesOn:
		p.closeAfter(v.chance.about(2 * time.Second))
	default:
		return p.letGo()
	}
	return nil
}

// replace has another process resume the session. The one that serves it dies, or it is
// planned. Then what is begun waits, what is under way has a moment to end, and the process
// lets go of the session.
func (v *survivor) replace(c *client, planned bool) {
	v.moving <- struct{}{}
	defer func() { <-v.moving }()
	life, _ := c.present()
	v.mu.Lock()
	old, over := v.now, v.lost() != nil
	if over || life.Err() != nil {
		v.mu.Unlock()
		return
	}
	v.ready = make(chan struct{})
	v.mu.Unlock()
	if planned {
		_ = sleep(life, v.chance.about(100*time.Millisecond))
	}
	v.processes++
	h, ok := c.move(old.host, fmt.Sprintf("%s+%d", old.host.name, v.processes))
	if !ok {
		return // the machine has died
	}
	v.mu.Lock()
	if err := v.lost(); err != nil { // it has told so since, and a deadline of the host's would forget it
		v.mu.Unlock()
		v.end(err)
		return
	}
	ticket, contact := old.session.ResumeTicket(), old.session.Contact()
	if v.mistake == contactAnew {
		contact = time.Now()
	}
	v.now = nil
	v.deadline = contact.Add(sessionTimeout - sessionTimeout/20)
	v.mu.Unlock()
	var err error
	if planned {
		c.world.fault(c.name, "process is replaced", "session %#x", v.ID())
		err = v.leaves(old)
	} else {
		c.world.fault(c.name, "process dies", "session %#x", v.ID())
		v.dies(old)
	}
	_ = sleep(life, v.chance.about(100*time.Millisecond))
	if err == nil {
		err = v.resume(life, c, h, ticket, contact)
	}
	if err != nil {
		c.note("not resumed: %v", err)
		v.end(err)
	}
}

// resume has a process on h resume the session and what it held.
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
		takingUp.Go(func() { k.resume(ctx, c, p) })
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

// replaceProcesses has the processes of one client die or be replaced, until faults cease.
func (w *World) replaceProcesses(c *client) {
	s := newStream(w.seed, c.name+" process deaths")
	for sleep(w.calm, s.about(4*time.Second)) == nil {
		c.mu.Lock()
		v, ok := c.opened.(*survivor)
		c.mu.Unlock()
		if !ok {
			continue
		}
		planned := s.chance(40)
		if s.chance(40) { // with answers on their way
			_, h := c.present()
			length := s.about(sessionTimeout / 8)
			h.stall(replies, length)
			_ = sleep(w.calm, length/2)
		}
		v.replace(c, planned)
	}
}
