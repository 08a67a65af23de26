package partition_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) {
	if number, servers, ok := strings.Cut(os.Getenv(clientEnv), " "); ok {
		runClient(must(strconv.Atoi(number)), strings.Split(servers, ","))
		return
	}
	leaktest.Main(ensembletest.Owner{Tests: m})
}

// clients is the number of clients. Each is a process on a host of its own.
const clients = 3

// sessionTimeout is the timeout that clients request and get.
const sessionTimeout = 4 * time.Second

// client is a client process. It uses all recipes at the same time until it is ended.
type client struct {
	number  int // counted from 0
	ops     atomic.Int64
	out     sync.Mutex
	encoder *json.Encoder

	mu      sync.Mutex
	waiting map[int64]chan reply // for the stores, by Op
}

// runClient opens one session after the other until the test closes standard input. Its
// last session expires.
func runClient(number int, servers []string) {
	c := &client{number: number, encoder: json.NewEncoder(os.Stdout), waiting: make(map[int64]chan reply)}
	ctx := context.Background()
	go c.receive()
	for {
		s, err := zookeeper.Open(ctx, recipes.SessionConfig{
			Servers: servers, SessionTimeout: sessionTimeout, MaxPacket: 256 << 10,
		})
		if err != nil {
			continue // no pause is needed: Open tries for 15 s
		}
		c.live(ctx, s)
	}
}

// receive reads the answers of the stores until the test closes standard input.
func (c *client) receive() {
	defer os.Exit(0)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		c.mu.Lock()
		c.waiting[r.Op] <- r
		delete(c.waiting, r.Op)
		c.mu.Unlock()
	}
}

// live works with one session until it is lost or ctx ends.
func (c *client) live(ctx context.Context, s recipes.Client) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		<-s.Done()
		cancel()
	}()
	var workers sync.WaitGroup
	for lane := range lanes {
		for _, work := range []func(*worker, string){(*worker).count, (*worker).configure, (*worker).queue} {
			workers.Go(func() { c.worker(ctx, s).rounds(lane, work) })
		}
	}
	for _, work := range []func(*worker) error{(*worker).lock, (*worker).campaign, (*worker).share, beside(0), beside(1)} {
		workers.Go(func() {
			for w := c.worker(ctx, s); ctx.Err() == nil; {
				if err := work(w); err != nil && endOf(err) == failed && ctx.Err() == nil && s.Err() == nil {
					w.note(message{Kind: closed, Text: err.Error()})
				}
			}
		})
	}
	workers.Go(func() { c.worker(ctx, s).transactions() })
	workers.Wait()
	closing, cancelClosing := context.WithTimeout(context.Background(), time.Second) // clean-up: the servers may be cut off
	defer cancelClosing()
	s.Close(closing)
}

// worker makes one operation after the other in a session.
type worker struct {
	*client
	ctx     context.Context
	session recipes.Client
	random  *rand.Rand
}

func (c *client) worker(ctx context.Context, s recipes.Client) *worker {
	return &worker{c, ctx, s, rand.New(rand.NewPCG(rand.Uint64(), 0))}
}

// note sends a message to the test process.
func (c *worker) note(m message) {
	c.out.Lock()
	defer c.out.Unlock()
	m.At, m.Session = now(), c.session.ID()
	if err := c.encoder.Encode(m); err != nil {
		os.Exit(0) // the test has ended
	}
}

// do reports an operation to the test before it is sent, and again when it has ended. The
// operation fills in its answer.
func (c *worker) do(m message, op func(*message) error) error {
	m.Op, m.Call = c.ops.Add(1), now()
	c.note(m)
	err := op(&m)
	if m.End = endOf(err); err != nil {
		m.Text = err.Error()
	}
	c.note(m)
	return err
}

// ask sends m to the test's stores and waits for the answer.
func (c *worker) ask(m message) reply {
	m.Op = c.ops.Add(1)
	answer := make(chan reply, 1)
	c.mu.Lock()
	c.waiting[m.Op] = answer
	c.mu.Unlock()
	c.note(m)
	return <-answer // even after the session has ended: a store has no sessions
}

// rounds calls work with a new path in each round.
func (c *worker) rounds(lane int, work func(*worker, string)) {
	for c.ctx.Err() == nil {
		number := now() / int64(round)
		work(c, fmt.Sprintf("%d-%d", lane, number))
		c.until((number + 1) * int64(round))
	}
}

// until waits for a time. It sets the rate of the load.
func (c *worker) until(moment int64) {
	select {
	case <-time.After(time.Duration(moment - now())):
	case <-c.ctx.Done():
	}
}

// must returns v. Only a mistake in this test makes it panic.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
