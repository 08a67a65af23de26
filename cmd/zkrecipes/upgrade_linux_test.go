package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// TestUpgradePlugin replaces the plugins of a holder, two waiters, a leader and a consumer by
// another build, on a real server. Their commands keep running, with the same tokens. A
// plugin that cannot be used changes nothing.
func TestUpgradePlugin(t *testing.T) {
	u := &upgrading{T: t, dir: t.TempDir(), servers: ensembletest.Shared(t).Connect(), chroot: fmt.Sprintf("/upgrade-plugin-%d", time.Now().UnixNano())}
	u.env = append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_RUNTIME_DIR=/none", "HOME="+t.TempDir(), "ZKRECIPES_CONFIG=", "ZKRECIPES_SERVERS="+u.servers,
		"ZKRECIPES_LOG_LEVEL=off", "ZKRECIPES_PLUGIN_COMMAND="+u.file("plugin"), "GORACE="+quickExit)
	for _, build := range []string{"v1.0.0", "v2.0.0"} {
		out, err := exec.Command("go", "build", "-ldflags=-w -X github.com/zkrecipes/zkrecipes/internal/version.release="+build, "-o", u.file(build), "../zkrecipes-plugin").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	u.install(u.file("v1.0.0"))

	record := `echo "$ZKRECIPES_TOKEN" >>%s; while [ ! -e stop ]; do sleep 0.02; done`
	holder := u.start("lock", u.chroot+"/lock", "--", "sh", "-c", fmt.Sprintf(record, "tokens"))
	u.await("tokens", 1)
	var waiters []*exec.Cmd
	for range 2 {
		waiters = append(waiters, u.start("lock", u.chroot+"/lock", "--", "sh", "-c", `echo "$ZKRECIPES_TOKEN" >>tokens`))
	}
	leader := u.start("elect", u.chroot+"/elect", "--", "sh", "-c", fmt.Sprintf(record, "terms"))
	outlived := u.start("lock", u.chroot+"/outlived", "--", "sh", "-c", `sleep 600 >/dev/null 2>&1 & echo $! >child; wait`)
	consumer := u.start("queue", "work", u.chroot+"/queue", "--", "sh", "-c", `cat >>elements`)
	u.await("terms", 1)
	u.await("child", 1)
	for u.contenders() < 3 || len(u.sockets()) < 6 {
		time.Sleep(10 * time.Millisecond) // the watchdog ends a test that hangs
	}
	all := append([]*exec.Cmd{holder, leader, outlived, consumer}, waiters...)

	u.install(u.file("v2.0.0"))
	first := u.upgrade(0, "-all")
	plugins := map[int]int{}
	for _, one := range first {
		plugins[one.PID] = one.New
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", one.New)); exe != u.file("plugin") || one.Old == one.New {
			t.Errorf("%+v: the plugin runs %q, %v", one, exe, err)
		}
	}
	for _, cmd := range all {
		if plugins[cmd.Process.Pid] == 0 {
			t.Errorf("%q was not upgraded: %v", cmd.Args, plugins)
		}
	}

	// The new plugin outlives a zkrecipes that is killed, as the old one would.
	must.Do(t, outlived.Process.Kill())
	_ = outlived.Wait()
	patient := exec.Command("patiently", "granted within [0-9ms]+;", "zkrecipes", "lock", "-timeout", "1s", u.chroot+"/outlived", "--", "true")
	patient.Dir, patient.Env = u.dir, u.env
	if said, _ := patient.CombinedOutput(); patient.ProcessState.ExitCode() != 124 {
		t.Errorf("a process of the command still runs, but lock exits with %d: %s", patient.ProcessState.ExitCode(), said)
	}
	must.Do(t, exec.Command("kill", strings.TrimSpace(u.read("child"))).Run())
	if code := u.exitCode("lock", u.chroot+"/outlived", "--", "true"); code != 0 {
		t.Errorf("lock exits with %d", code)
	}

	for name, script := range map[string]string{
		"crash":         "#!/bin/sh\necho it is broken >&2\nexit 3\n",
		"other version": "#!/bin/sh\necho '1|99|unix|/nowhere|grpc|'\nsleep 60\n",
		"not a program": "text",
	} {
		must.Do(t, os.WriteFile(u.file("bad"), []byte(script), 0o755))
		u.install(u.file("bad"))
		if got := u.upgrade(1, fmt.Sprint(holder.Process.Pid)); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	u.install(u.file("v1.0.0")) // the downgrade
	for _, one := range u.upgrade(0, fmt.Sprint(holder.Process.Pid), fmt.Sprint(waiters[0].Process.Pid)) {
		if one.Old != plugins[one.PID] {
			t.Errorf("%+v: after the bad plugins, the plugin is not %d", one, plugins[one.PID])
		}
	}

	if code := u.exitCode("queue", "put", u.chroot+"/queue", "element"); code != 0 {
		t.Errorf("queue put exits with %d", code)
	}
	u.await("elements", 0)
	must.Do(t, os.WriteFile(u.file("stop"), nil, 0o644))
	for _, cmd := range append(waiters, holder, leader) {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v: %s", cmd.Args, err, cmd.Stderr)
		}
	}
	var a, b, c int64
	if n, err := fmt.Sscan(u.read("tokens"), &a, &b, &c); n != 3 || a >= b || b >= c || strings.Count(u.read("tokens"), "\n") != 3 {
		t.Errorf("the tokens are %q, %v", u.read("tokens"), err)
	}
	if terms := strings.Fields(u.read("terms")); len(terms) != 1 {
		t.Errorf("the leader was elected again: %q", terms)
	}

	must.Do(t, consumer.Process.Kill()) // the socket of the killed process stays
	_ = consumer.Wait()
	u.upgrade(1, fmt.Sprint(consumer.Process.Pid))
	u.upgrade(0, "-all") // skips the other process that was killed
	if left := u.sockets(); len(left) > 0 {
		t.Errorf("these sockets are left: %q", left)
	}
}

type upgrading struct {
	*testing.T
	dir, servers, chroot string
	env                  []string
}

type upgradedLine struct {
	PID int `json:"pid"`
	Old int `json:"old_plugin"`
	New int `json:"new_plugin"`
}

func (u *upgrading) file(name string) string { return filepath.Join(u.dir, name) }

func (u *upgrading) read(name string) string {
	text, _ := os.ReadFile(u.file(name))
	return string(text)
}

// install renames a copy of the file over the plugin, which may run.
func (u *upgrading) install(file string) {
	text := must.Get(os.ReadFile(file))(u.T)
	must.Do(u.T, os.WriteFile(u.file("new"), text, 0o755))
	must.Do(u.T, os.Rename(u.file("new"), u.file("plugin")))
}

func (u *upgrading) command(args ...string) *exec.Cmd {
	cmd := exec.Command("zkrecipes", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = u.dir, u.env, &bytes.Buffer{}
	return cmd
}

// start starts a zkrecipes that ends with the test at the latest.
func (u *upgrading) start(args ...string) *exec.Cmd {
	cmd := u.command(args...)
	must.Do(u.T, cmd.Start())
	u.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return cmd
}

// exitCode runs zkrecipes and returns its exit code.
func (u *upgrading) exitCode(args ...string) int {
	cmd := u.command(args...)
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}

// upgrade runs upgrade-plugin, which must exit with the code. After a failure it has printed
// one line.
func (u *upgrading) upgrade(code int, args ...string) (all []upgradedLine) {
	u.Helper()
	cmd := u.command(append([]string{"upgrade-plugin", "-format=json"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	var failed *exec.ExitError
	err := cmd.Run()
	said := fmt.Sprint(cmd.Stderr)
	if got := cmd.ProcessState.ExitCode(); err != nil && !errors.As(err, &failed) || got != code || strings.Count(said, "\n") != code {
		u.Fatalf("upgrade-plugin %q: exit code %d, not %d (%v): %s", args, got, code, err, said)
	}
	u.Log(said)
	for lines := json.NewDecoder(&out); lines.More(); {
		var one upgradedLine
		must.Do(u.T, lines.Decode(&one))
		all = append(all, one)
	}
	return all
}

func (u *upgrading) contenders() int {
	cmd := u.command("contenders", "-format=json", u.chroot+"/lock")
	out := must.Get(cmd.Output())(u.T)
	return strings.Count(string(out), `"znode"`)
}

func (u *upgrading) sockets() (names []string) {
	for _, variable := range u.env {
		if temp, ok := strings.CutPrefix(variable, "TMPDIR="); ok {
			names, _ = filepath.Glob(filepath.Join(temp, "zkrecipes-*", "*.sock"))
		}
	}
	return names
}

// await waits until a file has that many lines, or any text.
func (u *upgrading) await(name string, lines int) {
	u.Helper()
	for end := time.Now().Add(watchdog.Patience); ; time.Sleep(10 * time.Millisecond) {
		if text := u.read(name); text != "" && strings.Count(text, "\n") >= lines {
			return
		}
		if time.Now().After(end) {
			u.Fatalf("%s is %q", name, u.read(name))
		}
	}
}
