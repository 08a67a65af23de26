// Package version says which version of zkrecipes a program was built from. The
// three binaries, the plugin's answer to its hosts and `make release` use it.
package version

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/semver"
)

// release is the version of a release. `make release` sets it:
//
//	-ldflags "-X github.com/zkrecipes/zkrecipes/internal/version.release=v0.1.0"
var release string

// String returns the version: that of the release, or else of the module, as Go
// writes it. That is "(devel)" for a build in a working copy that does not know
// its commit, and "(unknown)" for a build without modules.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return choose(release, info)
}

// modulePath is the module that this package is part of.
const modulePath = "github.com/zkrecipes/zkrecipes"

// Module returns the version of zkrecipes in this program. In zkrecipes' own binaries
// it is String, in others the version that they were built with.
func Module() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return module(release, info)
}

func module(release string, info *debug.BuildInfo) string {
	for _, dep := range info.Deps {
		switch {
		case dep.Path != modulePath:
		case dep.Replace != nil:
			return "(devel)" // whatever is in the other folder
		default:
			return dep.Version
		}
	}
	return choose(release, info)
}

// Same reports whether two versions are known to be of the same code. They are not if
// they are of a working copy that has changes, or that does not know its commit.
func Same(a, b string) bool { return a == b && semver.IsValid(a) && semver.Build(a) == "" }

// sources identifies the sources where the build knows them. "make build" sets it.
var sources string

// Build identifies the build of this program: programs that were built together have the
// same one. Where Go stamps no commit, as with -buildvcs=false, in a tarball, or beside an
// untracked file, it cannot distinguish two builds of one module by one Go with the same
// flags, unless "make build" made them.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return build(release, sources, info)
}

func build(release, sources string, info *debug.BuildInfo) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q %q", release, sources, info.GoVersion, info.Main.Path, info.Main.Version, info.Main.Sum)
	for _, s := range info.Settings {
		fmt.Fprintf(h, " %q=%q", s.Key, s.Value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// SameBuild reports whether a program with that version and Build is of the same code as
// this one.
func SameBuild(version, build string) bool {
	return Same(Module(), version) || build != "" && build == Build()
}

// Line returns what a program prints for -version, without a newline: its name,
// its version, and what it was built with, from and for.
func Line(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	details := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	return fmt.Sprintf("%s %s (%s)", program, choose(release, info), strings.Join(append(details, commit(info)...), ", "))
}

func choose(release string, info *debug.BuildInfo) string {
	return cmp.Or(release, info.Main.Version, "(unknown)")
}

// commit returns the commit and its time, or nothing where the build does not
// know them.
func commit(info *debug.BuildInfo) []string {
	var revision, modified, when string
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = " with changes"
		case setting.Key == "vcs.time":
			when = setting.Value
		}
	}
	if revision == "" {
		return nil
	}
	return []string{"commit " + revision[:min(12, len(revision))] + modified, when}
}
