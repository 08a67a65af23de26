package partition_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/peers"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// libraries are the other libraries that contend with ours, each at a path of its own: Curator and
// kazoo do not share a wait queue. The register that our holders write has the same name.
var libraries = [...]struct {
	name, path string
	dialect    recipes.Dialect
}{
	{"curator", "/with-curator", recipes.Curator},
	{"kazoo", "/with-kazoo", recipes.Kazoo},
}

// peer is a contender of another library, on the host of a client, whose faults it shares. Its hold
// has no deadline: when it is cut off, it may continue after its session has expired. So it writes
// nothing, and only the servers' logs show whether it held the lock at the same time as another
// contender.
type peer struct {
	name, path string
	command    []string
	host       int // its number, which is also its client's
	stop       context.CancelFunc
	done       chan struct{}

	mu    sync.Mutex
	cmd   *exec.Cmd // of the process that runs
	ended map[string]int
}

// startPeers starts one contender of each library that is installed and can use the servers.
func (r *run) startPeers() {
	classes := r.TempDir()
	for i, l := range libraries {
		command, err := peers.Contender(r, l.name, classes)
		if l.name == "curator" && err == nil && strings.HasPrefix(r.ensemble.Installation().Version, "3.4.") {
			err = fmt.Errorf("Curator 5 needs ZooKeeper 3.5")
		}
		if err != nil {
			r.Logf("NOT RUN: NO CONTENDER OF %s IS IN A WAIT QUEUE: %v", strings.ToUpper(l.name), err)
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		p := &peer{name: l.name, path: l.path, command: command, host: i, stop: cancel, done: make(chan struct{}), ended: map[string]int{}}
		r.peers = append(r.peers, p)
		go func() {
			defer close(p.done)
			for ctx.Err() == nil {
				r.contend(ctx, p)
				select {
				case <-time.After(time.Second): // tried again, as a service manager does
				case <-ctx.Done():
				}
			}
		}()
	}
}

// contend runs a process of another library until it ends. It ends when it loses its session.
func (r *run) contend(ctx context.Context, p *peer) {
	args := []string{strings.Join(r.ensemble.Addrs(), ","), strconv.Itoa(int(sessionTimeout.Milliseconds())), "lock", p.path, witness(r)}
	cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	stdin, stdout := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	defer stdin.Close()
	p.mu.Lock()
	err := r.network.Host(servers + p.host).Do(cmd.Start)
	if p.cmd = cmd; err != nil {
		p.ended[err.Error()]++
	}
	p.mu.Unlock()
	if err != nil {
		return
	}
	how := "killed"
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var number int
		m := message{At: now(), Client: p.host, Kind: turn, Path: p.path}
		if n, _ := fmt.Sscanf(lines.Text(), "turn %d %d", &number, &m.Token); n == 2 {
			r.receive(nil, m)
		} else if text := lines.Text(); text != "ready" && text != "listed" {
			how = text
		}
	}
	cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[how]++
}

// witness returns a new folder for a process, which then has no witness beside it.
func witness(t testing.TB) string {
	dir := t.TempDir()
	must(0, os.WriteFile(filepath.Join(dir, "counter"), nil, 0o600))
	return dir
}

// signalPeers sends a signal to the other libraries' processes on the host of a client.
func (r *run) signalPeers(client int, s syscall.Signal) {
	for _, p := range r.peers {
		p.mu.Lock()
		if p.host == client && p.cmd != nil && p.cmd.Process != nil {
			p.cmd.Process.Signal(s) // a process that has ended needs no signal
		}
		p.mu.Unlock()
	}
}

func (r *run) stopPeers() {
	for _, p := range r.peers {
		p.stop()
		<-p.done
		r.Logf("%s: its processes have ended so: %v", p.name, p.ended)
	}
	r.peers = nil
}

// begin waits until each lock has been held, by our clients and by the other libraries.
func (r *run) begin() {
	awaited := []func(message) bool{proof}
	for _, p := range r.peers {
		for _, k := range []kind{turn, granted} {
			awaited = append(awaited, func(m message) bool { return m.Kind == k && m.Path == p.path })
		}
	}
	for _, found := range awaited {
		if err := r.await(r.Context(), found); err != nil {
			r.Fatal(err)
		}
	}
}
