//go:build unix

package kubernetes_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// world is a server, and the programs of the pods.
type world struct {
	*testing.T
	server    *zkserver.Server
	bin       string
	log, done string
	started   int
}

// TestPods runs the commands of the manifests.
func TestPods(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	bin := t.TempDir()
	build := func(in string, packages ...string) {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-ldflags=-w", "-o", bin + "/"}, packages...)...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("../..", "./cmd/zkrecipes", "./cmd/zkrecipes-plugin")
	build(".", "./testdata/app")
	for name, test := range map[string]func(*world){
		"one pod serves":                       servesOnce,
		"one cluster reports in each period":   reportsOnce,
		"each element is sent, also by others": sends,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := must.Get(zkserver.Listen(zkserver.Config{TickTime: 500 * time.Millisecond}))(t)
			t.Cleanup(func() { _ = server.Close() })
			dir := t.TempDir()
			test(&world{T: t, server: server, bin: bin, log: filepath.Join(dir, "log"), done: filepath.Join(dir, "done")})
		})
	}
}

// pod is a running container on a node of its own.
type pod struct {
	name      string
	container corev1.Container
	cmd       *exec.Cmd
	network   *relay.Relay
	session   int64
	status    string // the URL of -status
	ended     chan struct{}
}

var statusAt = regexp.MustCompile(`status at (http://[0-9.:]+)`)

// start starts the first container of a manifest. It returns when it has a session.
func (w *world) start(file string) *pod {
	w.Helper()
	c := objects(w.T, file)[0].pod.Spec.Containers[0]
	var args []string
	for _, arg := range c.Args {
		switch application, ours := strings.CutPrefix(arg, "/app/"); {
		case ours:
			args = append(args, filepath.Join(w.bin, "app"), application)
		case arg == ":8080":
			args = append(args, "127.0.0.1:0")
		default:
			args = append(args, arg)
		}
	}
	w.started++
	p := &pod{name: fmt.Sprint("pod-", w.started), container: c, ended: make(chan struct{})}
	p.network = must.Get(relay.Listen([]string{w.server.Addr()}, nil))(w.T)
	p.cmd = exec.Command(filepath.Join(w.bin, "zkrecipes"), args...)
	p.cmd.Env = append(os.Environ(), "ZKRECIPES_CONFIG=", "HOME="+w.bin, "ZKRECIPES_SESSION_TIMEOUT=6s",
		"APP_POD="+p.name, "APP_LOG="+w.log, "APP_DONE="+w.done)
	for _, v := range c.Env {
		value := v.Value
		if v.Name == "ZKRECIPES_SERVERS" {
			value = p.network.Addr()
		}
		p.cmd.Env = append(p.cmd.Env, v.Name+"="+value)
	}
	before := w.server.Sessions()
	stderr := must.Get(p.cmd.StderrPipe())(w.T)
	must.Do(w.T, p.cmd.Start())
	w.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.network.Cut()
	})
	status := make(chan string, 1)
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			w.Logf("%s: %s", p.name, lines.Text())
			if found := statusAt.FindStringSubmatch(lines.Text()); found != nil {
				status <- found[1]
			}
		}
		_ = p.cmd.Wait()
	}()
	if slices.Contains(c.Args, "-status") {
		select {
		case p.status = <-status:
		case <-p.ended:
			w.Fatalf("%s has ended", p.name)
		}
	}
	if file == "put.yaml" {
		return p
	}
	w.await("a session of "+p.name, func() bool {
		for _, id := range w.server.Sessions() {
			if !slices.Contains(before, id) {
				p.session = id
			}
		}
		return p.session != 0
	})
	return p
}

// await polls, because what it waits for happens in other processes.
func (w *world) await(what string, happened func() bool) {
	w.Helper()
	for end := time.Now().Add(watchdog.Patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s: not seen; the log is\n%s", what, strings.Join(w.lines(), "\n"))
		}
	}
}

// lines returns what the applications have said.
func (w *world) lines() []string {
	text, _ := os.ReadFile(w.log) // nothing yet
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// said waits until the application of a pod has said something.
func (w *world) said(p *pod, what string) {
	w.Helper()
	w.await(p.name+" "+what, func() bool {
		return slices.ContainsFunc(w.lines(), func(line string) bool { return strings.HasPrefix(line, p.name+" "+what) })
	})
}

// exits waits until a pod has ended, and checks its exit code.
func (w *world) exits(p *pod, code int) {
	w.Helper()
	select {
	case <-p.ended:
	case <-time.After(watchdog.Patience):
		w.Fatalf("%s does not end", p.name)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		w.Errorf("%s: exit code %d, not %d", p.name, got, code)
	}
}

func (p *pod) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// isReady asks the readiness probe.
func (p *pod) isReady() bool {
	answer, err := http.Get(p.status + p.container.ReadinessProbe.HTTPGet.Path)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// isRunning reports whether the container runs, and its liveness probe agrees.
func (p *pod) isRunning() bool {
	answer, err := http.Get(p.status + p.container.LivenessProbe.HTTPGet.Path)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// leader waits until one of the pods is ready, and no other.
func (w *world) leader(pods ...*pod) (leader *pod) {
	w.Helper()
	w.await("a leader", func() bool {
		ready := slices.DeleteFunc(slices.Clone(pods), func(p *pod) bool { return !p.isReady() })
		if len(ready) != 1 {
			return false
		}
		leader = ready[0]
		return true
	})
	return leader
}

// without returns the other pods.
func without(pods []*pod, p *pod) []*pod {
	return slices.DeleteFunc(slices.Clone(pods), func(other *pod) bool { return other == p })
}

func servesOnce(w *world) {
	old := []*pod{w.start("leader.yaml"), w.start("leader.yaml"), w.start("leader.yaml")}
	w.said(w.leader(old...), "serves")

	// A rolling update: the new pods start while preStop sleeps. Then the old ones get TERM.
	pods := []*pod{w.start("leader.yaml"), w.start("leader.yaml"), w.start("leader.yaml")}
	for _, p := range pods {
		if p.isReady() || !p.isRunning() {
			w.Errorf("%s is ready, although an old pod leads", p.name)
		}
	}
	for _, p := range old {
		p.terminate()
	}
	for _, p := range old {
		select {
		case <-p.ended:
		case <-time.After(watchdog.Patience):
			w.Fatalf("%s does not end", p.name)
		}
	}
	second := w.leader(pods...)
	w.said(second, "serves")
	serving := "" // no two serve at the same time
	for _, line := range w.lines() {
		who, what, _ := strings.Cut(line, " ")
		switch starts := strings.HasPrefix(what, "serves"); {
		case starts && serving == "":
			serving = who
		case !starts && serving == who:
			serving = ""
		default:
			w.Errorf("%s: but %q serves", line, serving)
		}
	}

	// The leader's node is cut off. Its command ends, and another pod leads.
	second.network.Hold()
	third := w.leader(without(pods, second)...)
	w.said(second, "stops")
	w.await(second.name+" is not ready", func() bool { return !second.isReady() && second.isRunning() })
	second.network.Restore()

	// The leader's session is lost. It joins the wait queue again, behind the others.
	w.said(third, "serves")
	w.server.ExpireSession(third.session)
	w.said(third, "stops")
	w.leader(without(pods, third)...)
	for _, p := range pods {
		if !p.isRunning() {
			w.Errorf("%s does not run", p.name)
		}
	}
	var last int
	for _, line := range w.lines() {
		var token int
		if _, serves, _ := strings.Cut(line, "serves "); serves != "" {
			if _, err := fmt.Sscan(serves, &token); err != nil || token <= last {
				w.Errorf("the token of %q is not larger than %d", line, last)
			}
			last = token
		}
	}
}

func reportsOnce(w *world) {
	here := w.start("cron.yaml")
	w.said(here, "reports")
	there := w.start("cron.yaml")

	here.network.Hold() // its node is cut off
	w.said(there, "reports")
	w.exits(here, 123)
	w.server.ExpireSession(there.session)
	w.exits(there, 123) // after which the Job makes another pod

	retried, late := w.start("cron.yaml"), w.start("cron.yaml")
	w.said(retried, "reports")
	must.Do(w.T, os.WriteFile(w.done, nil, 0o600))
	w.said(retried, "has reported")
	w.exits(retried, 0)
	w.exits(late, 0)
	w.exits(w.start("cron.yaml"), 0)
	reports := slices.DeleteFunc(w.lines(), func(line string) bool { return !strings.Contains(line, "has reported") })
	if len(reports) != 1 {
		w.Errorf("the period has the reports %q", reports)
	}
}

func sends(w *world) {
	w.exits(w.start("put.yaml"), 0)
	old := w.start("queue.yaml")
	w.said(old, "sends to alice attempt 1")
	lost := w.start("queue.yaml")
	w.said(lost, "sends to bob attempt 1")

	old.terminate() // a rolling update: it ends when it has sent
	w.server.ExpireSession(lost.session)
	cut := w.start("queue.yaml")
	w.said(cut, "sends to bob attempt 2")
	_ = cut.cmd.Process.Kill() // the node fails
	last := w.start("queue.yaml")
	w.await("the third attempt", func() bool {
		return slices.ContainsFunc(w.lines(), func(line string) bool { return strings.HasSuffix(line, "sends to bob attempt 3") })
	})
	if !old.isRunning() {
		w.Errorf("%s has ended before its element was sent", old.name)
	}
	must.Do(w.T, os.WriteFile(w.done, nil, 0o600))
	w.said(old, "has sent to alice")
	w.exits(old, 0)
	w.await("bob", func() bool {
		return slices.ContainsFunc(w.lines(), func(line string) bool { return strings.HasSuffix(line, "has sent to bob") })
	})
	last.terminate()
	w.exits(last, 0)
	if alice := slices.DeleteFunc(w.lines(), func(line string) bool { return !strings.Contains(line, "sends to alice") }); len(alice) != 1 {
		w.Errorf("alice got %q", alice)
	}
}
