// Command release builds a release. For each platform it writes an archive with the three
// binaries, man pages and completions, and a file with the plugin's checksum for config.hcl.
// It also writes a software bill of materials in CycloneDX, and for Linux a deb, an rpm and an
// image for containers.
// SHA256SUMS has the checksums, for `sha256sum -c`. With an SSH key, SHA256SUMS.sig is its
// signature.
//
//	go -C tools run ./release -version v0.1.0 -key ~/.ssh/id_ed25519
//
// The same commit, version, Go and Ed25519 key produce the same bytes: nothing depends on the
// machine, and file times are the commit's.
//
// GoReleaser would add hundreds of modules for a single loop. A shell script would need GNU
// tar and zip. The tools for packages and the bill of materials are in tools/go.mod.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/mod/semver"
)

const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	version := flags.String("version", "", "`version` of the release, such as v0.1.0")
	list := flags.String("platforms", platforms, "`list` of operating systems and architectures")
	key := flags.String("key", "", "SSH private key `file` that signs SHA256SUMS, or the public key of one in ssh-agent")
	out := flags.String("out", filepath.Join("bin", "release"), "`directory` to write to; it must not exist")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !semver.IsValid(*version) {
		return fmt.Errorf("-version %q: give a semantic version such as v0.1.0", *version)
	}
	if *key != "" { // fail before the builds
		if _, err := sign(ctx, *key, nil); err != nil {
			return err
		}
	}
	when, err := commitTime(ctx)
	if err != nil {
		return err
	}
	// SHA256SUMS would list an old archive in the directory too.
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(*out, 0o755); err != nil {
		return fmt.Errorf("%w; remove it, or give another -out", err)
	}
	here := target{version: *version, goos: runtime.GOOS, goarch: runtime.GOARCH, time: when}
	built, err := os.MkdirTemp("", "zkrecipes-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	if err := here.build(ctx, built); err != nil {
		return err
	}
	guides, err := here.guides(ctx, built)
	if err != nil {
		return err
	}
	var images []v1.Image
	for _, platform := range strings.Split(*list, ",") {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("-platforms: %q is not an operating system, a slash and an architecture", platform)
		}
		fmt.Fprintf(stdout, "release: %s for %s\n", *version, platform)
		t := target{version: *version, goos: goos, goarch: goarch, time: when}
		if err := t.make(ctx, *out, built, guides); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		if goos == "linux" {
			image, err := t.image(built)
			if err != nil {
				return fmt.Errorf("%s: image: %w", platform, err)
			}
			images = append(images, image)
		}
	}
	if len(images) > 0 {
		if err := writeImages(*out, here, images); err != nil {
			return fmt.Errorf("images: %w", err)
		}
	}
	if err := writeSums(*out); err != nil {
		return err
	}
	return signSums(ctx, *out, *key, stdout)
}

// commitTime returns the time of the commit that is checked out.
func commitTime(ctx context.Context) (time.Time, error) {
	out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: git log: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
