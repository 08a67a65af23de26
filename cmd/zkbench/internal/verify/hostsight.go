package verify

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// node returns the znode of a grant with that token.
func (h *hostBench) node(token int64) (zkserver.Node, bool) {
	for _, n := range h.server.Tree() {
		if n.Stat.Czxid == token && n.Stat.EphemeralOwner > 0 {
			return n, true
		}
	}
	return zkserver.Node{}, false
}

// rival acquires a lock in another session, which the checker has.
func (h *hostBench) rival(path string) (recipes.Client, recipes.Hold, error) {
	s, err := zookeeper.Open(h.ctx, recipes.SessionConfig{Servers: []string{h.server.Addr()}, SessionTimeout: long})
	if err != nil {
		return nil, nil, err
	}
	l, err := s.Lock(path, recipes.LockConfig{})
	var hold recipes.Hold
	if err == nil {
		hold, err = l.Acquire(h.ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(h.ctx))
	}
	return s, hold, nil
}

// launched returns the plugin processes that the host has started.
func (h *hostBench) launched() []Launch {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.processes)
}

// usesPlugin fails if the host has not started the plugin.
func (h *hostBench) usesPlugin() error {
	if len(h.launched()) == 0 {
		return fmt.Errorf("the host has not started the plugin of %s", hostPluginEnv)
	}
	return nil
}

// order sets how plugin processes behave that start from now on.
func (h *hostBench) order(o Orders) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = o
}

// on sets what the plugin does about the next events of that name.
func (h *hostBench) on(name string, verdicts ...Verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next[name] = append(h.next[name], verdicts...)
}

// silence makes the plugin process, and later ones, answer nothing from now on.
func (h *hostBench) silence(from int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silentFrom = from
}

// kill kills the latest plugin process.
func (h *hostBench) kill() (at time.Time, err error) {
	all := h.launched()
	p, err := os.FindProcess(all[len(all)-1].PID)
	if err != nil {
		return time.Time{}, err
	}
	err = p.Kill()
	return time.Now(), err
}

// received returns the messages of a type that the plugins have received, and in which of them.
func received[M proto.Message](h *hostBench) (messages []M, process []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if m, ok := s.message.(M); ok && !s.Sent {
			messages, process = append(messages, m), append(process, s.process)
		}
	}
	return messages, process
}

// heartbeats returns when they arrived.
func (h *hostBench) heartbeats() (times []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if s.Name == "Beat" {
			times = append(times, s.at)
		}
	}
	return times
}

func (h *hostBench) writesOnce() error {
	if sent, _ := received[*pb.WriteRequest](h); len(sent) != 1 {
		return fmt.Errorf("the write is sent %s; want once", english.Count(len(sent), "time"))
	}
	return nil
}

// neverResumed fails if the host has tried to resume a session.
func (h *hostBench) neverResumed() error {
	for _, r := range h.starts() {
		if r.GetResume() != nil {
			return errors.New("it tries to resume the session")
		}
	}
	return nil
}

// starts returns what the host has asked for on the streams of sessions.
func (h *hostBench) starts() (all []*pb.Start) {
	messages, _ := received[*pb.OpenRequest](h)
	for _, m := range messages {
		if m.GetStart() != nil {
			all = append(all, m.GetStart())
		}
	}
	return all
}
