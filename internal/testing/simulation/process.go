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

// movable is a session that another process can resume.
type movable interface {
	recipes.Client
	ResumeTicket() []byte
	Contact() time.Time
	WasResumed(znode string) bool
	Detach(context.Context) error
	DropRest(context.Context) error
}

// process is a plugin process. It serves a survivor until it dies or is replaced.
type process struct {
	session movable
	host    *host
}

// mistake is a mistake of a host or its plugin.
type mistake int

const (
	none          mistake = iota
	unreaped              // the host does not wait for the end of the process
	anyCzxid              // a znode is resumed by its name alone
	closesInstead         // a process that is replaced closes the session
	servesOn              // a process that is replaced does not detach from the session
	contactAgain          // the deadline counts from the resume
)

// kill ends the process and waits for its end. The process sends nothing more, but messages that it
// has sent may still arrive.
func (p *process) kill() {
	p.host.mu.Lock()
	p.host.dead = true
	p.host.mu.Unlock()
	p.host.close()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.session.Close(ended)
}

// detachTimeout bounds the detaching of a process from its session, as a host does.
const detachTimeout = time.Second

// detach detaches the process from its session, and ends it.
func (p *process) detach() error {
	ctx, cancel := context.WithTimeout(context.Background(), detachTimeout)
	defer cancel()
	err := p.session.Detach(ctx)
	p.kill()
	return err
}

// closeAfter is a mistake: the process continues for d and then closes the session, as it must when
// its host has ended.
func (p *process) closeAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.session.Close(ctx)
	})
}

// dies ends a process whose session another one will resume.
func (v *survivor) dies(p *process) {
	if v.mistake != unreaped {
		p.kill()
		return
	}
	d := v.chance.about(2 * time.Second)
	p.host.stall(both, d)
	p.closeAfter(d)
}

// leaves detaches a process from the session and ends it, for a planned replacement. It fails if
// the session has ended.
func (v *survivor) leaves(p *process) error {
	switch v.mistake {
	case closesInstead:
		p.closeAfter(0)
	case servesOn:
		p.closeAfter(v.chance.about(2 * time.Second))
	default:
		return p.detach()
	}
	return nil
}

// replace ends the process and has another one resume the session. The process dies, or the
// replacement is planned: then new calls wait, pending calls have a moment to return, and the
// process detaches from the session.
func (v *survivor) replace(c *client, planned bool) {
	v.moving <- struct{}{}
	defer func() { <-v.moving }()
	life, _ := c.current()
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
	if err := v.lost(); err != nil { // reported by the process; without it, the host has only the deadline
		v.mu.Unlock()
		v.end(err)
		return
	}
	ticket, contact := old.session.ResumeTicket(), old.session.Contact()
	if v.mistake == contactAgain {
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

// resume starts a process on h. The process resumes the session, its grants and its waiting
// contenders.
func (v *survivor) resume(ctx context.Context, c *client, h *host, ticket []byte, contact time.Time) error {
	var p *process
	for p == nil {
		s, err := zookeeper.Dialer(h.Dial).Resume(ctx, sessionConfig, ticket, contact)
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
	var resuming sync.WaitGroup
	for _, k := range held {
		resuming.Go(func() { k.resume(ctx, c, p) })
	}
	resuming.Wait()
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
	c.note("session %#x continues", v.ID())
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.ready)
	return nil
}

// move gives the client's next process its own network, on the same machine.
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

// replaceProcesses has the processes of one client die or be replaced, until the faults end.
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
		if s.chance(40) { // while replies are on their way
			_, h := c.current()
			length := s.about(sessionTimeout / 8)
			h.stall(replies, length)
			_ = sleep(w.calm, length/2)
		}
		v.replace(c, planned)
	}
}
