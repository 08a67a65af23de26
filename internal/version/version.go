// Package version returns the version of zkrecipes that a program was built from. The three
// binaries, the plugin's answer to its hosts and `make release` use it.
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

// String returns the version of the release, or else Go's version of the module. That is
// "(devel)" for a build in a working copy without a known commit, and "(unknown)" for a
// build without modules.
func String() string { return choose(release, buildInfo()) }

// buildInfo returns what Go recorded in this program; it is empty if there is nothing.
func buildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

// modulePath is the module that this package is part of.
const modulePath = "github.com/zkrecipes/zkrecipes"

// Module returns the version of zkrecipes in this program: String in zkrecipes' own
// binaries, and the version of the dependency in others.
func Module() string { return module(release, buildInfo()) }

func module(release string, info *debug.BuildInfo) string {
	for _, dep := range info.Deps {
		switch {
		case dep.Path != modulePath:
		case dep.Replace != nil:
			return "(devel)" // the code of another folder
		default:
			return dep.Version
		}
	}
	return choose(release, info)
}

// Same reports whether two versions are known to be of the same code. The version of a
// working copy with changes, or without a known commit, equals no other version.
func Same(a, b string) bool { return a == b && semver.IsValid(a) && semver.Build(a) == "" }

// sources identifies the sources of the build. "make build" sets it.
var sources string

// Build identifies the build of this program: programs that were built together have the
// same one. Go stamps no clean commit with -buildvcs=false, in a tarball, or beside an
// untracked file. Then Build cannot distinguish two builds of one module by one Go with the
// same flags, unless "make build" made them.
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

// SameBuild reports whether a program with this version and Build has the same code as this
// program.
func SameBuild(version, build string) bool {
	return Same(Module(), version) || build != "" && build == Build()
}

// Line returns what a program prints for -version, without a newline: its name, its version,
// the version of Go, the platform and the commit.
func Line(program string) string {
	info := buildInfo()
	details := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	return fmt.Sprintf("%s %s (%s)", program, choose(release, info), strings.Join(append(details, commit(info)...), ", "))
}

func choose(release string, info *debug.BuildInfo) string {
	return cmp.Or(release, info.Main.Version, "(unknown)")
}

// commit returns the commit and its time, or nil if the build has none.
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
