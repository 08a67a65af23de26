package recipes_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// proved is a grant whose proof is renewed by the test.
type proved struct {
	recipes.Grant
	mu    sync.Mutex
	until time.Time
	done  chan struct{}
}

func (p *proved) renew(lasts time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(lasts)
}

func (p *proved) ValidUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

func (p *proved) Done() <-chan struct{} { return p.done }

func TestADangerIsToldOncePerDanger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		g := &proved{done: make(chan struct{})}
		g.renew(30 * time.Second)
		var warnings []time.Duration
		stop := recipes.OnDanger(g, 10*time.Second, func() { warnings = append(warnings, time.Since(begun).Round(time.Second)) })
		defer stop()
		for range 5 { // a server answers
			time.Sleep(15 * time.Second)
			g.renew(30 * time.Second)
		}
		time.Sleep(29 * time.Second) // no server answers
		g.renew(30 * time.Second)
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if len(warnings) != 2 || warnings[0] != 95*time.Second || warnings[1] != 124*time.Second {
			t.Errorf("warned after %v; want two times, when 10s were left", warnings)
		}
		g.renew(30 * time.Second)
		time.Sleep(10 * time.Second)
		close(g.done)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(warnings) != 2 {
			t.Errorf("warned after the end: %v", warnings)
		}
	})
}

func TestNoDangerIsToldAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &proved{done: make(chan struct{})}
		g.renew(30 * time.Second)
		stop := recipes.OnDanger(g, 10*time.Second, func() { t.Error("warned after stop") })
		stop()
		time.Sleep(time.Minute)
	})
}
