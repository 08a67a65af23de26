package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// container is an unpacked image.
type container struct {
	*testing.T
	root    string
	config  v1.Config
	servers string
}

// isolate makes a container's mounts, and becomes its first process. Container engines mount the
// same: the root is read-only, and /dev/shm is the only place to write to.
const isolate = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind /dev/null "$1/dev/null"
mount -t tmpfs -o mode=1777 shm "$1/dev/shm"
mount -t proc proc "$1/proc"
mount -o remount,bind,ro "$1"
root=$1 user=$2
shift 2
exec chroot --userspec="$user" "$root" "$@"`

// command returns a command as the first process of the container.
func (c container) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(c.Context(), watchdog.Patience)
	c.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", isolate, "sh", c.root, c.config.User}, c.config.Entrypoint, args)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	cmd.Env = append(c.config.Env, "ZKRECIPES_SERVERS="+c.servers)
	cmd.Stderr = os.Stderr
	return cmd
}

// says checks that a command in the container prints a text, and exits with code 0.
func (c container) says(want string, args ...string) {
	c.Helper()
	cmd := c.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), want) {
		c.Errorf("%q: %v:\n%s\nit lacks %q", args, err, &out, want)
	}
}

// TestAReleaseInAContainer runs the programs of the image from its root, on a real ZooKeeper. They
// are the first process, another user than root, and cannot write to the root.
func TestAReleaseInAContainer(t *testing.T) {
	testall.Require(t)
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: IMAGES WERE NOT RUN: only root may mount")
	}
	t.Setenv("ZKRECIPES_REQUIRE_ZOOKEEPER", os.Getenv("ZKRECIPES_REQUIRE_PACKAGING"))
	server := ensembletest.Start(t, ensembletest.Quick(1))
	here := target{version: "v0.9.8", goos: "linux", goarch: runtime.GOARCH, time: time.Unix(1e9, 0)}
	built, out := t.TempDir(), t.TempDir()
	must.Do(t, here.build(t.Context(), built))
	must.Do(t, writeImages(out, here, []v1.Image{must.Get(here.image(built))(t)}))
	image := load(t, filepath.Join(out, "zkrecipes_0.9.8_oci.tar"), runtime.GOARCH)
	c := container{t, t.TempDir(), must.Get(image.ConfigFile())(t).Config, server.Connect()}
	untar(t, mutate.Extract(image), c.root)

	// What a container engine adds, and a command.
	for _, dir := range []string{"dev/shm", "proc", "opt"} {
		must.Do(t, os.MkdirAll(filepath.Join(c.root, dir), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(c.root, "dev", "null"), nil, 0o644))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(c.root, "opt", "child"), "./testdata/child")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must.Do(t, os.Chmod(c.root, 0o755))

	c.says("zkrecipes v0.9.8 (", "-version")
	c.says("", "doctor")
	c.says("holds  lock", "lock", "/container/lock", "--", "/usr/bin/zkrecipes", "contenders", "/container/lock")
	c.says("collected\n", "lock", "/container/lock", "--", "/opt/child", "leave")

	cmd := c.command("elect", "/container/leader", "--", "/opt/child", "wait")
	lines := bufio.NewScanner(must.Get(cmd.StdoutPipe())(t))
	must.Do(t, cmd.Start())
	if lines.Scan(); lines.Text() != "user 65532:65532, read-only true" {
		t.Errorf("the command prints %q", lines.Text())
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	if err, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || err.ExitCode() != 7 {
		t.Errorf("after TERM: %v; want the exit code of the command", err)
	}
	c.says("no contenders", "contenders", "/container/leader")
}
