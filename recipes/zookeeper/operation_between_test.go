package zookeeper_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// meddling is a change by another client, just before one of the requests of an operation.
type meddling struct {
	name string
	at   func(zkserver.Request) bool
	do   func() error
	want error  // the operation returns it
	then func() // checks the state after the operation; may be nil
}

// A call notices what has changed between two of its requests. It then continues, or its error
// says what has changed.
func TestChangesBetweenTwoRequests(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for i := 0; o.isMeddledWith(t, i); i++ {
			}
		})
	}
}

// isMeddledWith runs the operation with its i-th meddling, and returns false if it has none.
func (o operation) isMeddledWith(t *testing.T, i int) (more bool) {
	onStage(t, func(s *stage) {
		do := o.prepare(s)
		if more = i < len(do.between); !more {
			return
		}
		m := do.between[i]
		met := zktest.Between(s.srv, s.victim, m.at, func() { s.fails(m.name, m.do()) })
		err := do.act(s.ctx)
		if !met() {
			s.Fatalf("%s: the case was not met: %v", m.name, err)
		}
		if !errors.Is(err, m.want) {
			s.Errorf("%s: the error is %v; want %v", m.name, err, m.want)
		}
		s.srv.SetFault(nil)
		if m.then != nil {
			m.then()
		}
		s.started.Wait()
	})
	return more
}

// The plugin of a call is killed, and another client makes a change before the next one serves. The
// call continues, or its error says what has changed.
func TestChangesBetweenTwoPlugins(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for i := 0; o.isMeddledWithWithoutAPlugin(t, i); i++ {
			}
		})
	}
}

// isMeddledWithWithoutAPlugin runs the operation with its i-th death, and returns false if it has none.
func (o operation) isMeddledWithWithoutAPlugin(t *testing.T, i int) (more bool) {
	onPluginStage(t, func(s *stage) {
		do := o.prepare(s)
		if more = i < len(do.deaths); !more {
			return
		}
		m := do.deaths[i]
		killed := make(chan struct{})
		var once sync.Once
		s.srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if r.SessionID == s.victim.ID() && m.at(r) {
				once.Do(func() {
					s.refuse.Store(true) // from now on no plugin can resume the session
					s.kill()
					close(killed)
				})
				f.DropReply = true
			}
			return f
		})
		acted := zktest.GoDo(s.ctx, do.act)
		select {
		case <-killed:
		case err := <-acted:
			s.Fatalf("%s: the case was not met: %v", m.name, err)
		}
		calm()
		s.srv.SetFault(nil)
		s.fails(m.name, m.do())
		s.refuse.Store(false)
		if err := <-acted; !errors.Is(err, m.want) {
			s.Errorf("%s: the error is %v; want %v", m.name, err, m.want)
		}
		if m.then != nil {
			m.then()
		}
		s.started.Wait()
	})
	return more
}
