package version

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestTheReleaseOverridesTheModulesVersion(t *testing.T) {
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

func TestVersionOfADependency(t *testing.T) {
	other := debug.Module{Path: "example.com/tool", Version: "v3.0.0"}
	dep := func(replace *debug.Module) []*debug.Module {
		return []*debug.Module{{Path: "example.com/x", Version: "v1.1.1"}, {Path: modulePath, Version: "v0.2.0", Replace: replace}}
	}
	for _, c := range []struct {
		name, release string
		info          debug.BuildInfo
		want          string
	}{
		{"zkrecipes itself", "", debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.1.0"}}, "v0.1.0"},
		{"a release of it", "v0.3.0", debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}}, "v0.3.0"},
		{"another program", "", debug.BuildInfo{Main: other, Deps: dep(nil)}, "v0.2.0"},
		{"another program with a replacement", "", debug.BuildInfo{Main: other, Deps: dep(&debug.Module{Path: "../zkrecipes"})}, "(devel)"},
	} {
		if got := module(c.release, &c.info); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func TestOnlyReleasesAndCleanCommitsAreTheSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"v0.1.0", "v0.1.0", true},
		{"v0.0.0-20261122094112-0123456789ab", "v0.0.0-20261122094112-0123456789ab", true},
		{"v0.1.0", "v0.1.1", false},
		{"v0.1.0+dirty", "v0.1.0+dirty", false},
		{"(devel)", "(devel)", false},
		{"(unknown)", "(unknown)", false},
		{"", "", false},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %t", c.a, c.b, got)
		}
	}
}

func TestBuildsAreTheSameIfTheirInformationIs(t *testing.T) {
	base := func() *debug.BuildInfo {
		return &debug.BuildInfo{
			GoVersion: "go1.26.0", Path: "example.com/cmd/a", Main: debug.Module{Path: modulePath, Version: "(devel)"},
			Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}},
		}
	}
	one := build("", "", base())
	other := base()
	other.Path = "example.com/cmd/b" // the plugin is another program
	other.Deps = []*debug.Module{{Path: "example.com/x"}}
	if build("", "", other) != one {
		t.Error("two programs of one build are not the same")
	}
	for name, change := range map[string]func(*debug.BuildInfo) (release, sources string){
		"release":  func(*debug.BuildInfo) (string, string) { return "v0.1.0", "" },
		"sources":  func(*debug.BuildInfo) (string, string) { return "", "1" },
		"Go":       func(i *debug.BuildInfo) (string, string) { i.GoVersion = "go1.27.0"; return "", "" },
		"module":   func(i *debug.BuildInfo) (string, string) { i.Main.Path = "example.com/fork"; return "", "" },
		"version":  func(i *debug.BuildInfo) (string, string) { i.Main.Version = "v0.1.0"; return "", "" },
		"checksum": func(i *debug.BuildInfo) (string, string) { i.Main.Sum = "h1:x"; return "", "" },
		"commit": func(i *debug.BuildInfo) (string, string) {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: "vcs.revision", Value: "0123"})
			return "", ""
		},
	} {
		changed := base()
		if release, sources := change(changed); build(release, sources, changed) == one {
			t.Errorf("another %s is the same build", name)
		}
	}
	if !SameBuild("(devel)", Build()) || SameBuild("(devel)", "another") || SameBuild("(devel)", "") {
		t.Error("this program's own build is another, or another is its own")
	}
}

func TestTheCommitHasItsTimeAndChanges(t *testing.T) {
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

func TestMain(m *testing.M) { leaktest.Main(m) }
