package host_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// What gRPC costs, over recipes that cost nothing: one call, and one lock taken
// and given back.

func BenchmarkCall(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Session) {
		for b.Loop() {
			if _, err := s.Counters(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAcquireRelease(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Session) {
		l, err := s.Lock("/l", recipes.LockConfig{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			h, err := l.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if err := h.Release(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func forEachTransport(b *testing.B, run func(*testing.B, recipes.Session)) {
	for _, transport := range []struct {
		name   string
		plugin func(*testing.B) *host.Plugin
	}{
		{"via=memory", func(b *testing.B) *host.Plugin { return inProcess(b) }},
		{"via=socket", unencrypted},
		{"via=process", func(b *testing.B) *host.Plugin { return launch(b, config(b, "plugin")) }}, // socket and TLS
	} {
		b.Run(transport.name, func(b *testing.B) {
			run(b, open(b, transport.plugin(b), time.Hour))
		})
	}
}

// BenchmarkEvent is the time until the host knows of a change that the plugin
// pushes: an election that one leader after the other wins and gives up, and
// that somebody observes. It includes a Campaign and a Resign.
func BenchmarkEvent(b *testing.B) {
	forEachTransport(b, func(b *testing.B, s recipes.Session) {
		e, err := s.Election("/e", recipes.ElectionConfig{})
		if err != nil {
			b.Fatal(err)
		}
		leaders, err := e.Observe(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			l, err := e.Campaign(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			for leader := range leaders {
				if leader.Znode == l.Znode() {
					break
				}
			}
			if err := l.Resign(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
