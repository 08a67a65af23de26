package simulation

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// controls are defects that other libraries have, or had. The simulation must notice each of them.
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
	{quiet(scenario{name: "the tutorial's barrier (ZOOKEEPER-1011)", open: openRaw, begin: tutorialBarriers}), "no progress"},
	{quiet(scenario{name: "ready is never removed, as in the source text", open: openRaw, begin: readyBarriers}), "entered as"},
	{scenario{name: "a cached queue whose deletion is repeated (kazoo)", open: openRaw, begin: cachedQueues}, "are missing"},
	{scenario{name: "a counter that is set again after a lost reply", open: openRaw, begin: retriedCounters}, "more may have been"},
}

var locked = []string{"/lock"}

func raw(name string, l rawLock) scenario {
	return scenario{name: name, paths: locked, open: openRaw, begin: l.game}
}

func quiet(s scenario) scenario {
	s.quiet = true
	return s
}

// withoutRaceDetector skips the controls in race builds; make test also runs them without.
func withoutRaceDetector(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("SKIPPED: make test runs it without the race detector, which makes it eight times slower")
	}
}

func TestKnownDefectsAreNoticed(t *testing.T) {
	withoutRaceDetector(t)
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
	withoutRaceDetector(t)
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

// rawTurn creates the path and takes a turn of a go-zookeeper client there.
func rawTurn(path string, take func(context.Context, *client, *rawSession) error) turn {
	return func(ctx context.Context, c *client, s recipes.Client) error {
		r := s.(*rawSession)
		if err := r.ensure(path); err != nil {
			return rawError(err)
		}
		return take(ctx, c, r)
	}
}

// tutorialBarriers are the barriers of ZooKeeper's tutorial. A member enters when it lists enough
// members. A member that leaves early makes the list too short for members that have not read it.
func tutorialBarriers(*World) game {
	const path = "/barrier"
	return game{turn: rawTurn(path, func(ctx context.Context, c *client, r *rawSession) error {
		own := path + "/" + c.name
		if _, err := r.Create(own, nil, zk.FlagEphemeral, r.acl); err != nil {
			return rawError(err)
		}
		if err := awaitChildren(ctx, r, path, func(n int) bool { return n >= barrierSize }); err != nil {
			return err
		}
		c.note("entered")
		if err := r.Delete(own, -1); err != nil {
			return rawError(err)
		}
		return awaitChildren(ctx, r, path, func(n int) bool { return n == 0 })
	})}
}

func awaitChildren(ctx context.Context, s *rawSession, path string, enough func(int) bool) error {
	for {
		children, _, changed, err := s.ChildrenW(path)
		if err != nil {
			return rawError(err)
		}
		if enough(len(children)) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readyBarriers are the barriers of the source text: a ready znode admits members, and is never
// deleted.
func readyBarriers(w *World) game {
	const path = "/barrier"
	b := &generations{world: w, of: make(map[string]string), inside: make(map[string][]*grant)}
	return game{turn: rawTurn(path, func(ctx context.Context, c *client, r *rawSession) error {
		own, err := r.Create(path+"/member-", nil, zk.FlagEphemeral|zk.FlagSequence, r.acl)
		if err != nil {
			return rawError(err)
		}
		defer func() { _ = r.Delete(own, -1) }()
		for {
			ready, _, made, err := r.ExistsW(path + "/ready")
			if err != nil {
				return rawError(err)
			}
			children, _, err := r.Conn.Children(path)
			if err != nil {
				return rawError(err)
			}
			var members []string
			for _, child := range children {
				if strings.HasPrefix(child, "member-") {
					members = append(members, path+"/"+child)
				}
			}
			slices.Sort(members)
			if ready {
				b.enter(&grant{client: c, session: r, path: path, Grant: &rawGrant{path: own}}, members)
				return nil
			}
			if len(members) >= barrierSize {
				if err := r.ensure(path + "/ready"); err != nil {
					return rawError(err)
				}
				continue
			}
			select {
			case <-made:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})}
}

// cachedQueues take elements from an old listing. They repeat a delete whose reply was lost. If the
// element does not exist, they assume that another client has taken it.
func cachedQueues(w *World) game {
	const path = "/queue"
	q := newStock(w)
	cached := make(map[string][]string)
	turn := rawTurn(path, func(ctx context.Context, c *client, r *rawSession) error {
		data := q.element(c)
		if _, err := r.Create(path+"/queue-", []byte(data), zk.FlagSequence, r.acl); err != nil {
			return rawError(err)
		}
		q.mu.Lock()
		q.put[data] = true
		list := cached[c.name]
		q.mu.Unlock()
		for {
			if len(list) == 0 {
				children, _, err := r.Conn.Children(path)
				if err != nil || len(children) == 0 {
					return rawError(err)
				}
				slices.Sort(children)
				list = children
			}
			element := path + "/" + list[0]
			list = list[1:]
			q.mu.Lock()
			cached[c.name] = list
			q.mu.Unlock()
			content, _, err := r.Get(element)
			for err == nil {
				if err = r.Delete(element, -1); err == nil {
					q.taken(c, 1, []recipes.Element{{ID: recipes.ElementID(element), Data: content}}, nil)
					return nil
				}
				if errors.Is(err, zk.ErrConnectionClosed) && sleep(ctx, retryPause) == nil {
					err = nil
				}
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return rawError(err)
			}
		}
	})
	return game{turn, q.check}
}

// retriedCounters increment the stored number, and do so again if the reply is lost.
func retriedCounters(w *World) game {
	const path = "/counter"
	t := &tally{world: w, sums: make(map[int64]string)}
	turn := rawTurn(path, func(ctx context.Context, c *client, r *rawSession) error {
		for {
			data, stat, err := r.Get(path)
			if err != nil {
				return rawError(err)
			}
			n, _ := strconv.ParseInt(string(data), 10, 64)
			_, err = r.Set(path, []byte(strconv.FormatInt(n+1, 10)), stat.Version)
			if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrConnectionClosed) && sleep(ctx, retryPause) == nil {
				continue
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if err == nil && !c.isDead() {
				t.added++
			} else {
				t.unknown++
			}
			return rawError(err)
		}
	})
	return game{turn, t.check}
}
