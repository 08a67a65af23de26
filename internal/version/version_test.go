package version

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestTheReleaseIsTheVersionWhereThereIsOne(t *testing.T) {
	for _, c := range []struct{ release, module, want string }{
		{"v0.1.0", "v0.0.0-20261122-abc", "v0.1.0"},
		{"", "v0.0.0-20261122-abc", "v0.0.0-20261122-abc"},
		{"", "", "(unknown)"},
	} {
		if got := choose(c.release, &debug.BuildInfo{Main: debug.Module{Version: c.module}}); got != c.want {
			t.Errorf("release %q of module %q: %q, not %q", c.release, c.module, got, c.want)
		}
	}
}

func TestTheCommitIsToldWithItsTimeAndChanges(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, c := range []struct {
		name     string
		settings []debug.BuildSetting
		want     []string
	}{
		{"none", nil, nil},
		{"clean", []debug.BuildSetting{
			setting("vcs.revision", "0123456789abcdef"), setting("vcs.time", "2026-11-22T09:41:12Z"), setting("vcs.modified", "false"),
		}, []string{"commit 0123456789ab", "2026-11-22T09:41:12Z"}},
		{"changed", []debug.BuildSetting{
			setting("vcs.revision", "0123"), setting("vcs.time", "2026-11-22T09:41:12Z"), setting("vcs.modified", "true"),
		}, []string{"commit 0123 with changes", "2026-11-22T09:41:12Z"}},
	} {
		if got := commit(&debug.BuildInfo{Settings: c.settings}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func TestALineHasProgramVersionAndPlatform(t *testing.T) {
	got := Line("zkrecipes")
	if want := "zkrecipes " + String() + " ("; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin with %q", got, want)
	}
	if want := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH; !strings.Contains(got, want) {
		t.Errorf("%q has no %q", got, want)
	}
}
