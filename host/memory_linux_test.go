package host_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// BenchmarkWaitingSessions measures a plugin's resident memory per session with a waiting
// Acquire. The recipes are fakes, which take two goroutines of 2 KiB and little else. So it
// measures only what the plugin adds to a library. TestWaitingSessionsTakeLittleMemory of
// cmd/zkrecipes-plugin measures everything.
func BenchmarkWaitingSessions(b *testing.B) {
	const sessions = 1000
	for _, role := range []string{"plugin", "unary plugin"} {
		b.Run("with="+role, func(b *testing.B) {
			for b.Loop() {
				p := launch(b, config(b, role))
				holder := open(b, p, time.Hour)
				acquire(b, holder)
				before := resident(b, p.PID())
				var waiting, joined sync.WaitGroup
				for range sessions {
					s := open(b, p, time.Hour)
					l := must.Get(s.Lock("/l", recipes.LockConfig{Joined: func(recipes.Place) { joined.Done() }}))(b)
					joined.Add(1)
					waiting.Go(func() { _, _ = l.Acquire(b.Context()) }) // until the plugin is closed
				}
				joined.Wait()
				b.ReportMetric(float64(resident(b, p.PID())-before)/1024/sessions, "KiB/session")
				_ = p.Close(b.Context())
				waiting.Wait()
			}
		})
	}
}

// resident returns the resident memory of a process in bytes.
func resident(b *testing.B, pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, pages int
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &pages)
	}
	if err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}
