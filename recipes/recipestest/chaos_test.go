package recipestest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var chaosSeed = flag.Uint64("chaos-seed", 0, "seed of the faults of TestChaos; 0 chooses a random one")

// TestChaos has contenders take turns while requests and replies are lost and sessions expire at
// random. The history of their grants must be linearizable, tokens must grow in the order of the
// writes, and no contender may be left.
func TestChaos(t *testing.T) {
	direct := func(*testing.T) recipes.Opener { return zookeeper.Open }
	inMemory := func(t *testing.T) recipes.Opener {
		p, err := host.InProcess(zookeeper.Open)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closePlugin(t, p) })
		return p.Open
	}
	for i, opener := range []func(*testing.T) recipes.Opener{direct, direct, direct, direct, inMemory, inMemory} {
		seed := *chaosSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		strategy := recipes.Strategies()[i%len(recipes.Strategies())]
		t.Run(fmt.Sprintf("%d-%s", i, strategy), func(t *testing.T) {
			t.Parallel()
			t.Logf("-chaos-seed=%d", seed)
			newChaos(t, opener(t), strategy, seed).run(t)
		})
	}
}

type chaos struct {
	server   *zkserver.Server
	opener   recipes.Opener
	strategy recipes.Strategy
	history  *history
	outside  *zk.Conn

	mu     sync.Mutex
	random *rand.Rand
	faults int
}

const (
	chaosContenders = 5
	chaosGrants     = 150
)

func newChaos(t *testing.T, opener recipes.Opener, strategy recipes.Strategy, seed uint64) *chaos {
	server := embedded(t)
	c := &chaos{
		server: server, opener: opener, strategy: strategy, history: newHistory(),
		outside: connect(t, server.Addr()),
		random:  rand.New(rand.NewPCG(seed, 0)),
	}
	for _, path := range []string{"/chaos", "/written"} {
		if _, err := c.outside.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// fault chooses the fault of one request of a contender.
func (c *chaos) fault(r zkserver.Request) zkserver.Fault {
	if r.SessionID == c.outside.SessionID() {
		return zkserver.Fault{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.random.IntN(1000)
	if n < 80 {
		c.faults++
	}
	switch {
	case n < 25:
		return zkserver.Fault{DropReply: true}
	case n < 50:
		return zkserver.Fault{CloseBefore: true}
	case n < 60:
		return zkserver.Fault{CloseAfter: true}
	case n < 70:
		return zkserver.Fault{ExpireBefore: true}
	case n < 80:
		return zkserver.Fault{ExpireAfter: true}
	}
	return zkserver.Fault{}
}

func (c *chaos) run(t *testing.T) {
	c.server.SetFault(c.fault)
	ctx := patient(t)
	var contenders errgroup.Group
	for i := range chaosContenders {
		contenders.Go(func() error {
			for c.history.count(granted) < chaosGrants {
				if err := c.life(ctx, i); err != nil {
					return fmt.Errorf("contender %d: %w", i, err)
				}
			}
			return nil
		})
	}
	if err := contenders.Wait(); err != nil {
		t.Error(err)
	}
	c.server.SetFault(nil)
	c.history.check(t, fenced)
	c.checkOrder(t)
	left, _, err := c.outside.Children("/chaos")
	left = slices.DeleteFunc(left, func(name string) bool { return strings.HasPrefix(name, "guards-") }) // an empty container
	if err != nil && !errors.Is(err, zk.ErrNoNode) || len(left) > 0 {
		t.Errorf("left in the wait queue: %v, %v", left, err)
	}
	t.Logf("%d grants, %d writes, %d faults", c.history.count(granted), c.history.count(wrote), c.faults)
}

// life is one session of a contender. It takes turns until the session is lost.
func (c *chaos) life(ctx context.Context, contender int) error {
	s, err := c.opener(ctx, recipes.SessionConfig{Servers: []string{c.server.Addr()}})
	if err != nil {
		return err
	}
	defer func() {
		// After a close without a reply, the server has to end the session.
		closeSession(s)
		c.server.ExpireSession(s.ID())
	}()
	for c.history.count(granted) < chaosGrants {
		if err := c.turn(ctx, s, contender); errors.Is(err, recipes.ErrSessionLost) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (c *chaos) turn(ctx context.Context, s recipes.Recipes, contender int) error {
	l, err := s.Lock("/chaos", recipes.LockConfig{Strategy: c.strategy})
	if err != nil {
		return err
	}
	var h recipes.Hold
	c.history.record(contender, granted, func() recipes.Token {
		if h, err = l.Acquire(ctx); err != nil {
			return 0
		}
		return h.Token()
	})
	if err != nil {
		return err
	}
	if contender%2 == 0 {
		h.Done() // half of the contenders watch their own znode
	}
	for n := range 3 {
		path := fmt.Sprintf("/written/%d-%d", h.Token(), n)
		c.history.record(contender, wrote, func() recipes.Token {
			if err = h.Write(ctx, recipes.Create(path, nil)); err != nil {
				return 0
			}
			return h.Token()
		})
		if err != nil && !errors.Is(err, recipes.ErrUnknownOutcome) && !errors.Is(err, recipes.ErrNotHeld) {
			return err
		}
	}
	c.history.record(contender, released, func() recipes.Token {
		if err = h.Release(ctx); err != nil {
			return 0
		}
		return h.Token()
	})
	if errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrSessionLost) {
		return fmt.Errorf("lost without the loss of its session: %w", err)
	}
	return err
}

// checkOrder checks, from the server's znodes, that tokens grow in the order of the writes. This
// includes the writes with an unknown outcome.
func (c *chaos) checkOrder(t *testing.T) {
	tokens := make(map[int64]recipes.Token) // by transaction
	for _, n := range c.server.Tree() {
		var token recipes.Token
		var i int
		if _, err := fmt.Sscanf(n.Path, "/written/%d-%d", &token, &i); err == nil {
			tokens[n.Stat.Czxid] = token
		}
	}
	var last recipes.Token
	for _, zxid := range slices.Sorted(maps.Keys(tokens)) {
		if tokens[zxid] < last {
			t.Errorf("transaction %#x has token %d, after one with token %d", zxid, tokens[zxid], last)
		}
		last = tokens[zxid]
	}
}
