package recipestest

import (
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func groupTests() []test {
	return []test{
		{"arguments are checked, and nothing is sent", groupArguments},
		{"join/a member is listed with its data, the oldest first", groupJoin},
		{"join/members are ephemeral children of the path", groupLayout},
		{"join/a name of the application's choice", groupNamed},
		{"join/a taken name is an error that says which session has it", groupTaken},
		{"join/a name that this session has is taken", groupTakenByOwn},
		{"join/it waits for the connection", groupJoinSuspended},
		{"join/a cancelled join leaves nothing", groupJoinCancelled},
		{"join/data that is too large is not sent", groupTooLarge},
		{"members/a group that does not exist is empty", groupEmpty},
		{"members/other children are ignored", groupForeign},
		{"update/others see it", groupUpdate},
		{"update/it survives a lost connection", groupUpdateSuspended},
		{"leave/the member is gone, and the name free", groupLeave},
		{"leave/it may be called again", groupLeaveTwice},
		{"leave/one that the server refuses can be tried again", groupLeaveRefused},
		{"lost/a member whose session expires leaves, and does not rejoin", groupExpired},
		{"lost/a member that another client deletes is told", groupRemoved},
		{"lost/a member does not touch a later one of its name", groupReplaced},
		{"write/a guarded write needs the member", groupWrite},
		{"watch/it tells arrivals, changes and departures", groupWatch},
		{"watch/a slow reader gets the latest", groupWatchSlowly},
		{"watch/a change during a lost connection is not missed", groupWatchReconnects},
		{"watch/a path that is made and removed is followed", groupWatchPath},
		{"watch/the channel is closed when the context ends or the session is lost", groupWatchEnds},
		{"watch/a first look that fails is an error", groupWatchFails},
	}
}

func (f *fixture) group(s recipes.Recipes, path, name string) recipes.Group {
	f.Helper()
	g, err := s.Group(path, recipes.GroupConfig{Name: name})
	f.must(err)
	return g
}

func (f *fixture) join(s recipes.Recipes, path, name, data string) recipes.Membership {
	f.Helper()
	m, err := f.group(s, path, name).Join(f.ctx, []byte(data))
	f.must(err)
	return m
}

// show returns the data of members, in order.
func show(members []recipes.Member) string {
	var data []string
	for _, m := range members {
		data = append(data, string(m.Data))
	}
	return strings.Join(data, " ")
}

func (f *fixture) members(s recipes.Recipes, path, want string) []recipes.Member {
	f.Helper()
	members, err := f.group(s, path, "").Members(f.ctx)
	f.must(err)
	if got := show(members); got != want {
		f.Errorf("members %q; want %q", got, want)
	}
	return members
}

func groupArguments(f *fixture) {
	s := f.open()
	before := f.stats(s)
	_, err := s.Group("a", recipes.GroupConfig{})
	f.is(err, recipes.ErrInvalid)
	for _, name := range []string{"a/b", "..", "_c_x", "a\x00"} {
		_, err := s.Group("/a", recipes.GroupConfig{Name: name})
		f.is(err, recipes.ErrInvalid)
	}
	if g := f.group(s, "/a", "b"); g.Path() != "/a" {
		f.Errorf("path %q", g.Path())
	}
	if after := f.stats(s); after.Reads != before.Reads || after.Writes != before.Writes {
		f.Error("something was sent")
	}
}

func groupLayout(f *fixture) {
	m := f.join(f.open(), f.path("g"), "", "x")
	names := f.children(f.path("g"))
	if len(names) != 1 || f.path("g", names[0]) != m.Znode() || !strings.HasPrefix(names[0], "_c_") ||
		!strings.HasSuffix(names[0], "-member-0000000000") {
		f.Errorf("children %v of the group of %s", names, m.Znode())
	}
	data, stat := f.read(m.Znode())
	if data != "x" || stat.EphemeralOwner == 0 || recipes.Token(stat.Czxid) != m.Token() {
		f.Errorf("%s has data %q and %+v", m.Znode(), data, stat)
	}
}

func groupEmpty(f *fixture) {
	s := f.open()
	f.members(s, f.path("nowhere"), "")
	f.create(f.path("empty"), "")
	f.members(s, f.path("empty"), "")
	if f.exists(f.path("nowhere")) {
		f.Error("looking made the group")
	}
}

func groupForeign(f *fixture) {
	s := f.open()
	f.create(f.path("g", "note"), "not a member")
	_, err := f.outside.CreateContainer(f.path("g", "sub"), nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	f.must(err)
	f.members(s, f.path("g"), "")
	f.join(s, f.path("g"), "", "x")
	_, err = f.outside.Create(f.path("g", "theirs"), []byte("curator's"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	f.must(err)
	f.members(s, f.path("g"), "x curator's")
}
