package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// serveLimited is a plugin with low limits.
func serveLimited() {
	plugin.Serve(new(fake.World).Open, plugin.Limits{Sessions: 1, Grants: 1, Watches: 1, Message: 4 << 10})
}

// TestLimits: a call that exceeds a limit fails with an error that names the limit. A release
// makes room for another grant.
func TestLimits(t *testing.T) {
	p := launch(t, config(t, "limited plugin"))
	large := recipes.SessionConfig{Servers: []string{"fake"}, ACL: []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "x", ID: strings.Repeat("x", 8<<10)}}}
	if _, err := p.Open(ctx(t), large); !errors.Is(err, recipes.ErrTooLarge) || errors.Is(err, recipes.ErrPluginLost) {
		t.Errorf("a configuration that is too large: %v", err)
	}
	// For a moment the plugin may still count the session whose message gRPC has refused.
	s, err := p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"fake"}, SessionTimeout: time.Minute})
	for errors.Is(err, recipes.ErrLimit) {
		s, err = p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"fake"}, SessionTimeout: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if _, err := p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"fake"}}); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second session: %v", err)
	}
	h := acquire(t, s)
	if err := h.Write(ctx(t), recipes.Create("/written", nil)); err != nil { // within the limit
		t.Error(err)
	}
	l := must.Get(s.Lock("/other", recipes.LockConfig{}))(t)
	if _, err := l.Acquire(ctx(t)); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second hold: %v", err)
	}
	e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
	must.Get(e.Observe(ctx(t)))(t)
	if _, err := e.Observe(ctx(t)); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second watch: %v", err)
	}
	if err := h.Write(ctx(t), recipes.Set("/x", make([]byte, 8<<10), recipes.AnyVersion)); !errors.Is(err, recipes.ErrTooLarge) {
		t.Errorf("a message that is too large: %v", err)
	}
	big := must.Get(s.Lock("/l", recipes.LockConfig{Data: make([]byte, 8<<10)}))(t)
	if _, err := big.TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrTooLarge) {
		t.Errorf("a contender that is too large: %v", err)
	}
	must.Do(t, h.Release(ctx(t)))
	acquire(t, s)
}

func TestNegativeLimitsAreRefused(t *testing.T) {
	for _, l := range []plugin.Limits{{Sessions: -1}, {Grants: -1}, {Watches: -1}, {Message: -1}} {
		if _, err := l.Normalize(); err == nil || !strings.Contains(err.Error(), "must be positive") {
			t.Errorf("%+v: %v", l, err)
		}
	}
	must.Get(plugin.Limits{}.Normalize())(t)
}
