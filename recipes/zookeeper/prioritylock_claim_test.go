package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A reader that claims between a writer's look and the writer's claim is let in
// first; the writer, whose claim is carried out all the same, waits for it.
func TestAReaderClaimsBetweenAWritersLookAndItsClaim(t *testing.T) {
	for _, try := range []bool{false, true} {
		onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, w recipes.Session) {
			r := openVirtual(t, srv)
			writers := must[recipes.PriorityLock](t)(w.PriorityLock("/between", recipes.PriorityLockConfig{Priority: 5}))
			if err := must[recipes.PriorityHold](t)(writers.AcquireWrite(ctx)).Release(ctx); err != nil { // makes the path
				t.Fatal(err)
			}
			looked, goOn := make(chan struct{}), make(chan struct{})
			held := false
			srv.SetFault(func(q zkserver.Request) zkserver.Fault {
				if q.SessionID == w.ID() && q.Op == zkserver.OpMulti && !held {
					held = true
					close(looked)
					return zkserver.Fault{Hold: goOn}
				}
				return zkserver.Fault{}
			})
			acquire := writers.AcquireWrite
			if try {
				acquire = writers.TryWrite
			}
			type result struct {
				hold recipes.PriorityHold
				err  error
			}
			written := make(chan result, 1)
			go func(ctx context.Context) {
				h, err := acquire(ctx)
				written <- result{h, err}
			}(ctx)
			<-looked
			readers := must[recipes.PriorityLock](t)(r.PriorityLock("/between", recipes.PriorityLockConfig{Priority: 0}))
			reader := must[recipes.PriorityHold](t)(readers.AcquireRead(ctx))
			close(goOn)
			if !try {
				synctest.Wait()
				select {
				case got := <-written:
					t.Fatalf("beside a reader the writer got %v, %v", got.hold, got.err)
				default:
				}
				// Nobody can come in any more.
				if _, err := readers.TryRead(ctx); !errors.Is(err, recipes.ErrContended) {
					t.Errorf("another reader: %v", err)
				}
				if err := reader.Release(ctx); err != nil {
					t.Fatal(err)
				}
			}
			got := <-written
			if try && !errors.Is(got.err, recipes.ErrContended) || !try && got.err != nil {
				t.Errorf("the writer, try %v: %v", try, got.err)
			}
		})
	}
}

// A writer that has claimed and waits for a reader is not granted when somebody
// has deleted its znode meanwhile: another writer may have claimed.
func TestAClaimThatIsRemovedIsNotGranted(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		contend := func(session recipes.Session, priority int) recipes.PriorityLock {
			return must[recipes.PriorityLock](t)(session.PriorityLock(s.path, recipes.PriorityLockConfig{Priority: priority}))
		}
		victim := s.session()
		writers := contend(victim, 5)
		if err := must[recipes.PriorityHold](t)(writers.AcquireWrite(s.ctx)).Release(s.ctx); err != nil { // makes the path
			t.Fatal(err)
		}
		looked, goOn, claimed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var once, waits sync.Once
		srv.SetFault(func(q zkserver.Request) (f zkserver.Fault) {
			switch {
			case q.SessionID != victim.ID():
			case q.Op == zkserver.OpMulti:
				once.Do(func() { close(looked); f.Hold = goOn })
			case q.Op == zkserver.OpGetData && strings.Contains(q.Path, "-reading-"):
				waits.Do(func() { close(claimed) })
			}
			return f
		})
		written := make(chan error, 1)
		go func() {
			_, err := writers.AcquireWrite(s.ctx)
			written <- err
		}()
		<-looked
		reader := must[recipes.PriorityHold](t)(contend(s.session(), 0).AcquireRead(s.ctx))
		close(goOn)
		<-claimed
		for _, n := range srv.Tree() {
			if strings.Contains(n.Path, "-writing-") {
				if err := s.raw.Delete(n.Path, -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := reader.Release(s.ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-written; !errors.Is(err, recipes.ErrRemoved) {
			t.Errorf("the writer without a znode: %v", err)
		}
	})
}
