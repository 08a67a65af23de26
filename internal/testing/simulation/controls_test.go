package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// controls are defects that other libraries have, or had, and mistakes of a host or plugin. The
// simulation must notice each of them.
var controls = []struct {
	scenario
	says string // part of the violation
}{
	{scenario{name: "go-zookeeper's Lock, after the loss of its session", paths: locked, open: openRaw,
		begin: func(*World) game { return game{turn: libraryLockTurn} }}, "still acts on"},
	{raw("only an event reports the loss, no clock", rawLock{holds: byEvents}), "still acts on"},
	{raw("the clock starts at the suspension (CURATOR-460)", rawLock{holds: fromSuspension}), "still acts on"},
	{raw("a lease that is used after a reconnect without a check (Curator's revoked lease)", rawLock{holds: byEvents, resumes: true}), "was written after"},
	{raw("a create is repeated, and the first znode stays (CURATOR-45)", rawLock{holds: byEvents, again: true}), "no progress"},
	{quiet(raw("whole names are sorted (ZOOKEEPER-2931)", rawLock{holds: byEvents, byName: true})), "still acts on"},
	{quiet(raw("the predecessor is deleted between listing and watch", rawLock{holds: byEvents, blind: true})), "no progress"},
	{scenario{name: "writes without fencing", paths: locked, begin: func(*World) game { return game{turn: unfencedTurn} }}, "was written after"},
	{resumed("a session is resumed before its process has ended", unreaped, lockKind), "still acts on"},
	{quiet(resumed("a resume that does not compare the czxid", anyCzxid, nameKind)), "which is another znode's"},
	{resumed("a process that is replaced closes the session", closesInstead, lockKind), "still acts on"},
	{resumed("a process that is replaced serves until its end", servesOn, lockKind), "still acts on"},
	{resumed("a deadline that counts from the resume", contactAgain, lockKind), "still acts on"},
}

var locked = []string{"/lock"}

func raw(name string, l rawLock) scenario {
	return scenario{name: name, paths: locked, open: openRaw, begin: l.game}
}

func quiet(s scenario) scenario {
	s.quiet = true
	return s
}

func TestKnownDefectsAreNoticed(t *testing.T) {
	const most = 1000
	for _, control := range controls {
		t.Run(control.name, func(t *testing.T) {
			for seed := range uint64(most) {
				r := simulateScenario(t, control.scenario, seed+1)
				if i := slices.IndexFunc(r.Violations, func(v string) bool { return strings.Contains(v, control.says) }); i >= 0 {
					t.Logf("noticed by seed %d: %s", r.Seed, r.Violations[i])
					return
				}
			}
			t.Errorf("not noticed in %d seeds", most)
		})
	}
}

// TestTheLockOfTheControlsWorks: without its mistakes the raw lock passes the checks that the
// controls fail, so the controls show the mistakes. Under faults only its progress is checked,
// because it relies on events, which is another mistake.
func TestTheLockOfTheControlsWorks(t *testing.T) {
	for _, sc := range []scenario{raw("faults", rawLock{holds: byEvents}), quiet(raw("no faults", rawLock{holds: byEvents}))} {
		for seed := range uint64(number(30, 10)) {
			for _, v := range simulateScenario(t, sc, seed+1).Violations {
				if sc.quiet || strings.Contains(v, "no progress") {
					t.Errorf("%s: seed %d: %s", sc.name, seed+1, v)
				}
			}
		}
	}
}

// unfencedTurn acquires a lock of this library, and writes without its guard.
func unfencedTurn(ctx context.Context, c *client, s recipes.Client) error {
	l, err := s.Lock("/lock", recipes.LockConfig{})
	if err != nil {
		return err
	}
	hold, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	g := &grant{client: c, session: s, path: "/lock", journaled: true, Grant: unfenced{hold, s, c}}
	return c.hold(ctx, g, 1, hold.Release)
}

// unfenced writes as to a store that checks no grant.
type unfenced struct {
	recipes.Hold
	session recipes.Client
	client  *client
}

func (u unfenced) Write(ctx context.Context, ops ...recipes.Op) error {
	b, err := u.client.world.outside.Barrier(ops[0].Path)
	if err != nil {
		return err
	}
	return b.Set(ctx, nil)
}
