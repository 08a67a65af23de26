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

// parties are those that a fault can meet. The client is the one that holds the lock.
var parties = []string{"leader", "follower", "holder"}

// breaks are what can happen to the network of one host.
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

// kinds are all faults.
func kinds() (all []fault) {
	for _, who := range parties {
		for _, b := range breaks {
			all = append(all, fault{who: who, how: b.how})
		}
		all = append(all, fault{who: who, how: killed}, fault{who: who, how: frozen})
	}
	return all
}

// fault is one fault, and when it was.
type fault struct {
	who, how   string
	start, end int64         // until it was mended
	settled    int64         // when all servers served, and the lock was held again
	client     int           // whom it met, if a client
	elected    time.Duration // after which there was another leader; 0 if there was none
}

const (
	shortestFault = 3 * time.Second
	longestFault  = 15 * time.Second // where the lock is not held again before it is mended
	settling      = watchdog.Patience
	quiet         = time.Second // between faults
)

// inject makes one fault, waits until the lock is held in spite of it, mends it, and
// waits until everything works.
func (r *run) inject(f fault) {
	ctx, cancel := context.WithTimeout(r.Context(), settling)
	defer cancel()
	leader, err := r.ensemble.Leader(ctx)
	if err != nil {
		r.Fatal(err)
	}
	mend := r.hit(ctx, &f, leader)
	longest := longestFault
	if f.who == "holder" && f.how == frozen {
		longest = settling // the control needs another holder, however busy the machine is
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
	mend()
	r.revive(ctx, f)
	if err := r.await(ctx, func(m message) bool { return proof(m) && m.Call > f.end }); err != nil {
		r.Fatalf("after %s nobody holds the lock: %v", f, err)
	}
	f.settled = now()
	r.faults = append(r.faults, f)
	time.Sleep(quiet) // the time without a fault is measured too
}

// revive starts servers again that have ended by themselves, as the system that runs
// them does, and waits until all serve. ZooKeeper 3.8.0 ends itself when it meets an
// ACL that a snapshot has left out (ZOOKEEPER-4846). It cannot lose what a majority
// has, so it is counted and is no failure. If it ends at each start, for the snapshot
// is the same, it forgets what it has stored, while the others are a majority.
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
			r.Log("it forgets what it has stored")
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

// hit makes the fault and returns what mends it, the network aside.
func (r *run) hit(ctx context.Context, f *fault, leader *ensemble.Server) (mend func()) {
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

func (r *run) hitServer(ctx context.Context, f *fault, s *ensemble.Server) (mend func()) {
	strike, undo := s.Kill, func() error { return s.Restart(ctx) }
	if f.how == frozen {
		strike, undo = s.Freeze, s.Thaw
	}
	if err := strike(); err != nil {
		r.Log(err) // it has ended by itself: revive starts it
	}
	return func() {
		if err := undo(); err != nil {
			r.Log(err) // revive tries again
		}
	}
}

func (r *run) hitClient(ctx context.Context, f *fault) (mend func()) {
	if f.how == killed {
		r.kill(r.clients[f.client])
		return func() { r.start(f.client) }
	}
	// Between its read of the stores and its writes, so that it wakes and writes what
	// is out of date: a pause at the worst moment.
	traps := make(chan trapped, 1)
	r.mu.Lock()
	r.trap = traps
	r.mu.Unlock()
	var holder trapped
	select {
	case holder = <-traps:
	case <-ctx.Done():
		r.Fatal("nobody reads the store: ", ctx.Err())
	}
	r.freeze(holder.client)
	f.client, f.start = holder.client.number, now()
	return func() {
		r.thaw(holder.client)
		holder.client.reply(holder.answer)
	}
}

// election is the time until another server led, or 0 if none did before ctx ended.
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
		time.Sleep(10 * time.Millisecond) // no event tells of an election
	}
	return 0
}

func (f fault) String() string { return fmt.Sprintf("%s %s", f.who, f.how) }
