package partition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/partition"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// parties are the processes that a fault can affect. The holder is the client that holds the
// lock.
var parties = []string{"leader", "follower", "holder"}

// breaks are the faults of one host's network.
var breaks = []struct {
	how     string
	out, in partition.Weather
}{
	{"cut off", partition.Cut, partition.Cut},
	{"cannot send", partition.Cut, partition.Weather{}},
	{"cannot receive", partition.Weather{}, partition.Cut},
	{"200 ms late", late, late},
	{"loses 30 %", lossy, lossy},
}

var (
	late  = partition.Weather{Delay: 200 * time.Millisecond}
	lossy = partition.Weather{Loss: 0.3}
)

const (
	killed = "SIGKILL"
	frozen = "SIGSTOP"
)

// kinds returns all faults.
func kinds() (all []fault) {
	for _, who := range parties {
		for _, b := range breaks {
			all = append(all, fault{who: who, how: b.how})
		}
		all = append(all, fault{who: who, how: killed}, fault{who: who, how: frozen})
	}
	return all
}

// fault is one fault, and when it happened.
type fault struct {
	who, how   string
	start, end int64         // end: when it was repaired
	settled    int64         // when all servers served, and the lock was held again
	client     int           // the affected client, if it was one
	elected    time.Duration // time until there was another leader; 0 if there was none
}

const (
	shortestFault = 3 * time.Second
	longestFault  = 15 * time.Second // if the lock is not held again earlier
	settling      = watchdog.Patience
	quiet         = time.Second // between faults
)

// inject makes one fault, waits until the lock is held despite it, repairs it, and waits
// until everything works.
func (r *run) inject(f fault) {
	ctx, cancel := context.WithTimeout(r.Context(), settling)
	defer cancel()
	leader, err := r.ensemble.Leader(ctx)
	if err != nil {
		r.Fatal(err)
	}
	repair := r.hit(ctx, &f, leader)
	longest := longestFault
	if f.who == "holder" && f.how == frozen {
		longest = settling // the check of the stores needs another holder, even on a busy machine
	}
	lasting, stop := context.WithTimeout(ctx, longest)
	elected := make(chan time.Duration, 1)
	go func() { elected <- r.election(lasting, f, leader) }()
	r.await(lasting, func(m message) bool {
		return proof(m) && m.Call > f.start && m.At-f.start > int64(shortestFault)
	})
	stop()
	f.end, f.elected = now(), <-elected
	r.network.Heal()
	repair()
	r.revive(ctx, f)
	r.settle(ctx, f)
}

// settle waits until the lock is held after a fault, and records the fault.
func (r *run) settle(ctx context.Context, f fault) {
	if err := r.await(ctx, func(m message) bool { return proof(m) && m.Call > f.end }); err != nil {
		r.Fatalf("after %s no client acquires the lock: %v", f, err)
	}
	f.settled = now()
	r.faults = append(r.faults, f)
	time.Sleep(quiet) // the time without a fault is measured too
}

// revive restarts servers that have ended by themselves, as a service manager does, and
// waits until all serve. ZooKeeper 3.8.0 ends when it finds an ACL that a snapshot has left
// out (ZOOKEEPER-4846). The majority still has all data, so this is counted but is not a
// failure. A server ends at each start with that snapshot. In that case revive deletes its data,
// provided that the other servers are a majority.
func (r *run) revive(ctx context.Context, f fault) {
	for try := 0; ; try++ {
		var starting errgroup.Group
		var down []*ensemble.Server
		for i, s := range r.ensemble.Servers() {
			if s.Pid() == 0 {
				r.ended = append(r.ended, fmt.Sprintf("server %d, after %s", i+1, f))
				down = append(down, s)
			}
		}
		if try > 0 && len(down) == 1 && strings.Contains(down[0].Log(), "Failed to fetch acls") {
			r.Log("the data of the server is deleted")
			if err := down[0].Forget(); err != nil {
				r.Fatal(err)
			}
		}
		for _, s := range down {
			starting.Go(func() error { return s.Restart(ctx) })
		}
		err := starting.Wait()
		if err == nil {
			err = r.ensemble.WaitServing(ctx)
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			r.Fatalf("after %s: %v", f, err)
		}
	}
}

// hit makes the fault and returns a function that repairs it, except for the network.
func (r *run) hit(ctx context.Context, f *fault, leader *ensemble.Server) (repair func()) {
	server, host := leader, 0
	for i, s := range r.ensemble.Servers() {
		if f.who == "follower" && s != leader && (server == leader || rand.IntN(2) == 0) {
			server = s
		}
		if s == server {
			host = i
		}
	}
	if f.who == "holder" {
		server = nil
		r.mu.Lock()
		f.client = r.holder
		r.mu.Unlock()
		host = servers + f.client
	}
	f.start = now()
	for _, b := range breaks {
		if b.how == f.how {
			r.network.Out(host, b.out)
			r.network.In(host, b.in)
			return func() {}
		}
	}
	if server != nil {
		return r.hitServer(ctx, f, server)
	}
	return r.hitClient(ctx, f)
}

func (r *run) hitServer(ctx context.Context, f *fault, s *ensemble.Server) (repair func()) {
	strike, undo := s.Kill, func() error { return s.Restart(ctx) }
	if f.how == frozen {
		strike, undo = s.Freeze, s.Thaw
	}
	if err := strike(); err != nil {
		r.Log(err) // the server has ended by itself: revive starts it
	}
	return func() {
		if err := undo(); err != nil {
			r.Log(err) // revive tries again
		}
	}
}

func (r *run) hitClient(ctx context.Context, f *fault) (repair func()) {
	if f.how == killed {
		r.kill(r.clients[f.client])
		return func() { r.start(f.client) }
	}
	// Freeze the client between its read of the stores and its writes, the worst moment:
	// it wakes and writes an outdated value.
	traps := make(chan trapped, 1)
	r.mu.Lock()
	r.trap = traps
	r.mu.Unlock()
	var holder trapped
	select {
	case holder = <-traps:
	case <-ctx.Done():
		r.Fatal("no client reads the store: ", ctx.Err())
	}
	r.freeze(holder.client)
	f.client, f.start = holder.client.number, now()
	return func() {
		r.thaw(holder.client)
		holder.client.reply(holder.answer)
	}
}

// election returns the time until another server led, or 0 if ctx ended first.
func (r *run) election(ctx context.Context, f fault, leader *ensemble.Server) time.Duration {
	for f.who == "leader" && ctx.Err() == nil {
		for _, s := range r.ensemble.Servers() {
			if s == leader {
				continue
			}
			if mode, err := s.Mode(ctx); err == nil && mode == ensemble.Leader {
				return time.Duration(now() - f.start)
			}
		}
		time.Sleep(10 * time.Millisecond) // no event reports an election
	}
	return 0
}

func (f fault) String() string { return fmt.Sprintf("%s %s", f.who, f.how) }
