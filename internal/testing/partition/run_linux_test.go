package partition_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/partition"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

const (
	servers = 3
	// A leader that is cut off steps down after syncLimit ticks. The contract assumes that
	// this is less than a third of the session timeout.
	tick      = 400 * time.Millisecond
	syncLimit = "3"
	// ZooKeeper's default. Servers that receive a leader's packets but cannot reach it
	// elect it again and again, and each attempt takes that long.
	initLimit = "10"
)

// run has three servers and three clients on a network that can be broken. Hosts 0 to 2 are
// servers, the others are clients.
type run struct {
	*repeating
	network  *partition.Network
	ensemble *ensemble.Ensemble
	clients  [clients]*process
	peers    []*peer
	faults   []fault
	ended    []string // servers that ended by themselves

	mu       sync.Mutex
	changed  *sync.Cond // after each message
	messages []message
	holder   int // the client that was granted the lock last
	stores   map[string]*store
	trap     chan<- trapped // receives the next read of the unfenced store, which is not answered
}

// store is a register outside of ZooKeeper. The test keeps it, and no fault affects the
// connection to it.
type store struct {
	compares bool // refuses a token that is smaller than the largest it has seen
	largest  recipes.Token
	value    int64
	writes   int64 // acknowledged ones
}

// repeating is a test that logs at its end why it failed. The logs of the servers come
// before that, and a reader of a CI log begins at its end.
type repeating struct {
	*testing.T
	reasons []string
}

func (r *repeating) repeat() {
	if r.Failed() {
		r.Logf("failed because: %s", strings.Join(r.reasons, "\n"))
	}
}

func (r *repeating) Error(args ...any) {
	r.Helper()
	r.Errorf("%s", fmt.Sprint(args...))
}

func (r *repeating) Errorf(format string, args ...any) {
	r.Helper()
	r.reasons = append(r.reasons, fmt.Sprintf(format, args...))
	r.T.Errorf(format, args...)
}

func (r *repeating) Fatal(args ...any) {
	r.Helper()
	r.Error(args...)
	r.FailNow()
}

func (r *repeating) Fatalf(format string, args ...any) {
	r.Helper()
	r.Errorf(format, args...)
	r.FailNow()
}

// process is a client process.
type process struct {
	number int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	done   chan struct{} // all output of the process has been read, and it is reaped
}

// trapped is a client whose read is not answered yet.
type trapped struct {
	client *process
	answer reply
}

func newRun(t *testing.T) *run {
	r := &run{repeating: &repeating{T: t}, stores: map[string]*store{fenced: {compares: true}, unfenced: {}}, network: network(t, servers+clients)}
	t.Cleanup(r.repeat)
	r.changed = sync.NewCond(&r.mu)
	cfg := ensembletest.Quick(servers)
	cfg.TickTime = tick
	cfg.Properties = map[string]string{"syncLimit": syncLimit, "initLimit": initLimit}
	for i := range servers {
		h := r.network.Host(i)
		cfg.Hosts = append(cfg.Hosts, ensemble.Host{IP: h.IP(), Do: h.Do})
	}
	r.ensemble = ensembletest.Start(t, cfg)
	r.createRegisters()
	for i := range r.clients {
		r.start(i)
	}
	r.startPeers()
	t.Cleanup(r.stop)
	return r
}

// dial connects from the host of the first client.
func (r *run) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = r.network.Host(servers).Do(func() error {
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

func (r *run) createRegisters() {
	s := r.session()
	c := must(s.Configuration(registers))
	for _, key := range []string{guarded, left, right, "term", libraries[0].name, libraries[1].name} {
		if _, err := c.Set(r.Context(), key, []byte("0 0"), recipes.NoRevision); err != nil {
			r.Fatal(err)
		}
	}
}

// session opens a session for the test itself, from the host of the first client.
func (r *run) session() recipes.Client {
	s, err := zookeeper.Dialer(r.dial).Open(r.Context(), recipes.SessionConfig{Servers: r.ensemble.Addrs(), SessionTimeout: 20 * time.Second})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // clean-up: the servers may be cut off
		defer cancel()
		s.Close(ctx)
	})
	return s
}

// start starts a client process on its host.
func (r *run) start(number int) {
	p := &process{number: number, done: make(chan struct{}), cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", clientEnv, number, strings.Join(r.ensemble.Addrs(), ",")))
	p.cmd.Stderr = os.Stderr
	stdout := must(p.cmd.StdoutPipe())
	p.stdin = must(p.cmd.StdinPipe())
	if err := r.network.Host(servers + number).Do(p.cmd.Start); err != nil {
		r.Fatal(err)
	}
	r.clients[number] = p
	go func() {
		defer close(p.done)
		defer p.cmd.Wait()
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var m message
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				return // a line that a kill has cut off
			}
			m.Client = number
			r.receive(p, m)
		}
	}()
}

// stop ends the clients. A client ends when its standard input does.
func (r *run) stop() {
	r.network.Heal()
	r.stopPeers()
	for _, p := range r.clients {
		r.thaw(p)
		p.stdin.Close()
	}
	for _, p := range r.clients {
		select {
		case <-p.done:
		case <-time.After(watchdog.Patience):
			r.Errorf("client %d does not end", p.number)
			r.kill(p)
		}
	}
}

func (r *run) kill(p *process) {
	p.cmd.Process.Kill()
	<-p.done
	r.signalPeers(p.number, syscall.SIGKILL)
}

// freeze stops a client. It returns once the signal is sent. The client may run for a
// moment longer, as if the fault began a moment later.
func (r *run) freeze(p *process) {
	p.cmd.Process.Signal(syscall.SIGSTOP)
	r.signalPeers(p.number, syscall.SIGSTOP)
}

func (r *run) thaw(p *process) {
	p.cmd.Process.Signal(syscall.SIGCONT)
	r.signalPeers(p.number, syscall.SIGCONT)
}

// receive records a message of a client, or answers it for a store.
func (r *run) receive(p *process, m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	switch {
	case m.Kind == readStore || m.Kind == writeStore:
		answer := r.stores[m.Path].serve(m)
		if r.trap != nil && m.Kind == readStore && m.Path == unfenced {
			r.trap <- trapped{p, answer}
			r.trap = nil
			return
		}
		p.reply(answer)
		return
	case m.Kind == granted && m.Path == "/lock":
		r.holder = m.Client
	}
	r.messages = append(r.messages, m)
}

func (p *process) reply(answer reply) {
	line, _ := json.Marshal(answer)
	p.stdin.Write(append(line, '\n')) // a client that was killed needs no answer
}

// serve reads or writes a store.
func (s *store) serve(m message) reply {
	answer := reply{Op: m.Op, Refused: s.compares && m.Token < s.largest}
	s.largest = max(s.largest, m.Token)
	if m.Kind == writeStore && !answer.Refused {
		s.value = m.In
		s.writes++
	}
	answer.Value = s.value
	return answer
}

// await waits for a message, received after the call of await, for which found returns
// true. It returns an error if ctx ends first.
func (r *run) await(ctx context.Context, found func(message) bool) error {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for seen := len(r.messages); ; r.changed.Wait() {
		for ; seen < len(r.messages); seen++ {
			if found(r.messages[seen]) {
				return nil
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// proof reports whether m is a successful guarded write under the lock. At some time
// between its call and its end, the lock was held.
func proof(m message) bool {
	return m.Kind == write && m.Path == guarded && m.End == done
}
