package recipestest

import (
	"context"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleBarrierTests() []test {
	return []test{
		{"a bad path or size is ErrInvalid", doubleArguments},
		{"enter/no member enters before all have joined, and all enter with the same members", doubleEnter},
		{"enter/the znodes are those of the source text", doubleLayout},
		{"enter/a barrier of size one admits a single member", doubleOne},
		{"enter/a lone member does not enter by a stale ready", doubleStaleReady},
		{"enter/ready is not a member", doubleReadyIsNoMember},
		{"enter/surplus members wait for the next round", doubleSurplus},
		{"enter/a member that is cancelled is not counted", doubleCancelled},
		{"enter/a member whose session ends is not counted", doubleDied},
		{"enter/a member whose znode is deleted gets ErrRemoved", doubleRemoved},
		{"enter/a ready during a lost connection is not missed", doubleReconnects},
		{"leave/no call returns before all members leave", doubleLeave},
		{"leave/a barrier can be used many times", doubleAgain},
		{"leave/a member whose session ends inside does not block the others", doubleLeaveDied},
		{"leave/a member whose Leave is cancelled does not block the others", doubleLeaveCancelled},
		{"leave/a call that the server refuses can be repeated", doubleLeaveRefused},
		{"leave/a later ready does not let a member leave early", doubleLateReady},
		{"leave/a departure during a lost connection is not missed", doubleLeaveReconnects},
		{"leave/a member whose znode is deleted waits for the others, and gets ErrRemoved", doubleLeaveRemoved},
		{"leave/the loss of the session ends the wait", doubleLeaveLost},
	}
}

func (f *fixture) doubleBarrier(s recipes.Recipes, path string, size int) recipes.DoubleBarrier {
	f.Helper()
	b, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: size})
	f.must(err)
	return b
}

// entering is a member that enters in the background.
type entering struct {
	*pending[recipes.Passage]
	session recipes.Client
	cancel  context.CancelFunc
}

// enters starts a member, and returns when its znode exists.
func (f *fixture) enters(s recipes.Client, path string, size int) *entering {
	f.Helper()
	before := f.children(path)
	ctx, cancel := context.WithCancel(f.ctx)
	e := &entering{session: s, cancel: cancel}
	e.pending = start(f, func() (recipes.Passage, error) { return f.doubleBarrier(s, path, size).Enter(ctx, []byte("who")) })
	f.Cleanup(cancel)
	for {
		new := func(name string) bool { return strings.HasPrefix(name, "_c_") && !slices.Contains(before, name) }
		if slices.ContainsFunc(f.children(path), new) || f.ctx.Err() != nil {
			return e
		}
	}
}

// entered has size members enter together.
func (f *fixture) entered(path string, size int) []recipes.Passage {
	f.Helper()
	var all []*entering
	for range size {
		all = append(all, f.enters(f.open(), path, size))
	}
	var in []recipes.Passage
	for _, e := range all {
		in = append(in, e.must(f))
	}
	return in
}

func (f *fixture) leaves(p recipes.Passage) *pending[struct{}] {
	return startErr(f, func() error { return p.Leave(f.ctx) })
}

func (f *fixture) allLeave(in []recipes.Passage) {
	f.Helper()
	var all []*pending[struct{}]
	for _, p := range in {
		all = append(all, f.leaves(p))
	}
	for _, l := range all {
		l.must(f)
	}
}

func doubleArguments(f *fixture) {
	s := f.open()
	for _, size := range []int{0, -1} {
		f.is(errOf(s.DoubleBarrier("/a", recipes.DoubleBarrierConfig{Size: size})), recipes.ErrInvalid)
	}
	f.is(errOf(s.DoubleBarrier("a", recipes.DoubleBarrierConfig{Size: 1})), recipes.ErrInvalid)
	if b := f.doubleBarrier(s, "/a", 3); b.Path() != "/a" || b.Size() != 3 {
		f.Errorf("%s of %d", b.Path(), b.Size())
	}
	f.is(errOf(f.doubleBarrier(s, f.path("b"), 1).Enter(f.ended(), nil)), context.Canceled)
	f.awaitChildren(f.path("b"), 0)
}

func doubleLayout(f *fixture) {
	f.entered(f.path("b"), 2)
	names := f.children(f.path("b"))
	if len(names) != 3 || names[2] != "ready" || !strings.Contains(names[0], "-member-000000000") {
		f.Errorf("children %v", names)
	}
	data, stat := f.read(f.path("b", "ready"))
	if stat.EphemeralOwner != 0 || !strings.Contains(data, names[0]) || !strings.Contains(data, names[1]) {
		f.Errorf("ready has %q, %+v", data, stat)
	}
	if data, stat := f.read(f.path("b", names[0])); data != "who" || stat.EphemeralOwner == 0 {
		f.Errorf("a member has %q, %+v", data, stat)
	}
}
