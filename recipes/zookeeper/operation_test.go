package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/supervised"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// An operation is one thing that a session does with a recipe. The operations of all
// recipes are one table. These techniques run over it:
//
//	operation_faults_test.go    each fault at each request
//	operation_outcomes_test.go  the end of a session or a context while a write has no answer
//	operation_waits_test.go     the awaited event happens before each request
//	operation_denied_test.go    a permission is missing
//	operation_between_test.go   another client is faster between two requests, or between two plugins
//
// A new recipe adds operations, in a file of its own.
type operation struct {
	name    string               // begins with the interface and the method, as in "Lock.Acquire, free"
	prepare func(s *stage) doing // runs without faults
}

// doing has the steps of an operation after its preparation, and what the techniques expect.
type doing struct {
	act func(context.Context) error // the call of the victim
	// happen causes, in another session, the event that act waits for. nil: act does not wait.
	happen func() error
	// happened reports whether act was carried out. If it was, and act
	// has failed, its error must match ErrUnknownOutcome. nil: no outcome can be unknown, and no error matches it.
	happened func() bool
	answer   func() string // shows the result of act; nil: act reads nothing

	// These are about an act that has failed and is called again.
	harmless bool         // repeating act is harmless, so its error need not say that it was carried out
	once     bool         // act is not repeated if it was carried out
	refused  error        // act returns it when it is repeated after it was carried out
	stays    bool         // each later call returns the result of the first one
	failed   func() error // prepares act and happen for another run; nil: happen runs once

	end   func() error // gives back the grant of act
	after func() error // called at the end: other sessions use the path

	lost   []error // beside ErrSessionLost, the error matches these if the session expires
	single bool    // act is sent once, without a check of its outcome: that may be unknown although nothing has ended

	denied  []denial
	between []meddling
	deaths  []meddling // between two plugins: the first one is killed at the request
}

func operations() []operation {
	return slices.Concat(lineOperations(), questionsAboutLines(), semaphoreOperations(), electionOperations(), sharedLockOperations(), priorityLockOperations(),
		queueOperations(), barrierOperations(), doubleBarrierOperations(), groupOperations(), namesOperations(), configurationOperations(),
		counterOperations(), transactionOperations(), sharesOperations())
}

// stagePath is the path of the recipes under test.
const stagePath = "/app/it"

// stage has the server and the sessions of one operation, on virtual time.
type stage struct {
	*testing.T
	ctx           context.Context // ends if the operation hangs
	like          zkserver.Release
	srv           *zkserver.Server
	host          *supervised.Host // the victim's host; nil: the victim has no plugin
	killed        atomic.Bool
	refuse        atomic.Bool // dial refuses connections
	victim, other recipes.Client
	started       sync.WaitGroup
	expires       bool // the server expires the victim's session, which notices it later

	mu     sync.Mutex
	grants []*heldGrant
}

// patience bounds, on virtual time, all steps that must end by themselves. So a test that
// hangs fails at once.
const patience = 10 * time.Minute

func onStage(t *testing.T, f func(s *stage)) { setUp(t, zkserver.Newest, false, f) }

// onPluginStage is onStage with a victim whose session is open through a plugin.
func onPluginStage(t *testing.T, f func(s *stage)) { setUp(t, zkserver.Newest, true, f) }

// stageTimeout is the timeout of a session on the stage.
const stageTimeout = 9 * time.Second

func setUp(t *testing.T, like zkserver.Release, plugin bool, f func(s *stage)) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{Like: like, MinSessionTimeout: 4 * time.Second})
		t.Cleanup(func() { srv.Close() })
		ctx, end := context.WithTimeout(t.Context(), patience)
		t.Cleanup(end)
		s := &stage{T: t, ctx: ctx, like: like, srv: srv}
		s.other = s.session()
		open := zookeeper.Dialer(s.dial).Open
		if plugin {
			s.host = supervised.New(s.dial)
			s.Cleanup(s.host.Close)
			open = s.host.Open
		}
		s.victim = s.open(open)
		f(s)
	})
}

func (s *stage) dial(context.Context, string, string) (net.Conn, error) {
	if s.refuse.Load() {
		return nil, errors.New("refused")
	}
	client, server := net.Pipe()
	go s.srv.ServeConn(server)
	return client, nil
}

func (s *stage) session() recipes.Client { return s.open(zookeeper.Dialer(s.dial).Open) }

func (s *stage) open(open recipes.Opener) recipes.Client {
	s.Helper()
	cfg := recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: stageTimeout, MaxPacket: 64 << 10}
	opened := must.Get(open(s.ctx, cfg))(s.T)
	s.Cleanup(func() { opened.Close(context.Background()) })
	return opened
}

// kill kills the plugin of the victim.
func (s *stage) kill() {
	s.killed.Store(true)
	s.host.Kill()
}

// calm waits until all background work is done. The pauses between retries add up to less
// than this second of virtual time.
func calm() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// ok ends the test if its preparation has failed.
func (s *stage) ok(err error) {
	s.Helper()
	must.Do(s, err)
}

// start runs f in a goroutine. The test waits for it after the awaited event.
func (s *stage) start(f func(context.Context) error) {
	s.started.Go(func() {
		if err := f(s.ctx); err != nil && s.Context().Err() == nil {
			s.Errorf("in the other session: %v", err)
		}
	})
}

// lost reports whether the victim has lost its session.
func (s *stage) lost() bool { return s.victim.Err() != nil }

// survivor is the victim's session or, after its loss, a new one of the same application.
func (s *stage) survivor() recipes.Client {
	if s.lost() {
		return s.session()
	}
	return s.victim
}

func (s *stage) lock(in recipes.Recipes, cfg recipes.LockConfig) recipes.Lock {
	return must.Get(in.Lock(stagePath, cfg))(s.T)
}

func (s *stage) shared(in recipes.Recipes) recipes.SharedLock {
	return must.Get(in.SharedLock(stagePath, recipes.SharedLockConfig{Revocable: true, Grace: time.Second}))(s.T)
}

func (s *stage) priority(in recipes.Recipes, cfg recipes.PriorityLockConfig) recipes.PriorityLock {
	cfg.Revocable, cfg.Grace = true, time.Second
	return must.Get(in.PriorityLock(stagePath, cfg))(s.T)
}

func (s *stage) election(in recipes.Recipes) recipes.Election {
	return must.Get(in.Election(stagePath, recipes.ElectionConfig{}))(s.T)
}

func (s *stage) queue(in recipes.Recipes, cfg recipes.QueueConfig) recipes.Queue {
	return zktest.QueueOf(s.T, in, stagePath, cfg)
}

func (s *stage) barrier(in recipes.Recipes) recipes.Barrier {
	return zktest.BarrierAt(s.T, in, stagePath)
}

func (s *stage) double(in recipes.Recipes, d recipes.Dialect, size int) recipes.DoubleBarrier {
	return must.Get(in.DoubleBarrier(stagePath, recipes.DoubleBarrierConfig{Size: size, Dialect: d}))(s.T)
}

func (s *stage) group(in recipes.Recipes, name string) recipes.Group {
	return must.Get(in.Group(stagePath, recipes.GroupConfig{Name: name}))(s.T)
}

func (s *stage) names(in recipes.Recipes) recipes.Names { return zktest.NamesAt(s.T, in, stagePath) }

func (s *stage) configuration(in recipes.Recipes) recipes.Configuration {
	return zktest.ConfigAt(s.T, in, stagePath)
}

func (s *stage) counter(in recipes.Recipes) recipes.Counter {
	return zktest.CounterAt(s.T, in, stagePath)
}

func (s *stage) latch(in recipes.Recipes, count int64) recipes.Latch {
	return zktest.LatchAt(s.T, in, stagePath, count)
}

func (s *stage) transaction(in recipes.Recipes, v recipes.Variant) recipes.Transaction {
	return must.Get(in.Transaction(stagePath, recipes.TransactionConfig{Variant: v}))(s.T)
}

// find returns a znode that matches, or nil.
func (s *stage) find(matches func(zkserver.Node) bool) *zkserver.Node {
	tree := s.srv.Tree()
	if i := slices.IndexFunc(tree, matches); i >= 0 {
		return &tree[i]
	}
	return nil
}

func (s *stage) node(path string) *zkserver.Node {
	return s.find(func(n zkserver.Node) bool { return n.Path == path })
}

func (s *stage) present(path string) bool { return s.node(path) != nil }

func (s *stage) holds(path, data string) bool {
	n := s.node(path)
	return n != nil && string(n.Data) == data
}

// below counts the znodes whose paths have the prefix.
func (s *stage) below(prefix string) (n int) {
	for _, node := range s.srv.Tree() {
		if strings.HasPrefix(node.Path, prefix) {
			n++
		}
	}
	return n
}

// remove deletes a znode, as another program would.
func (s *stage) remove(path string) error { return zktest.BarrierAt(s.T, s.other, path).Remove(s.ctx) }

// removeLike deletes a znode whose path contains part.
func (s *stage) removeLike(part string) error {
	n := s.find(func(n zkserver.Node) bool { return strings.Contains(n.Path, part) })
	if n == nil {
		return errors.New("there is no " + part)
	}
	return s.remove(n.Path)
}

// write replaces a znode's data, as another program would.
func (s *stage) write(path, data string) error {
	h, err := must.Get(s.other.Lock("/writing", recipes.LockConfig{}))(s.T).Acquire(s.ctx)
	if err != nil {
		return err
	}
	return errors.Join(h.Write(s.ctx, recipes.Set(path, []byte(data), recipes.AnyVersion)), h.Release(s.ctx))
}

// owned are the ephemeral znodes of the victim. It omits receipts, and the guards of a hold's
// writes, because no contender waits for them.
func (s *stage) owned() (paths []string) {
	for _, n := range s.srv.Tree() {
		if n.Stat.EphemeralOwner == s.victim.ID() && !strings.Contains(n.Path, "-receipt-") && !strings.Contains(n.Path, "-guard-") {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// sole drops the result of a call, and keeps its error.
func sole[T any](call func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := call(ctx); return err }
}

// givenUp is a call that is not repeated after it was cancelled; then is called instead.
func givenUp(call, then func(context.Context) error) func(context.Context) error {
	var err error
	return func(ctx context.Context) error {
		if errors.Is(err, context.Canceled) {
			return then(ctx)
		}
		err = call(ctx)
		return err
	}
}

// asking builds an operation that only reads something.
func asking[T any](ask func(context.Context) (T, error), show func(T) string) doing {
	var read T
	return doing{
		act:    func(ctx context.Context) (err error) { read, err = ask(ctx); return err },
		answer: func() string { return show(read) },
	}
}

// granting builds an operation that gets a hold.
func granting[G recipes.Hold](s *stage, acquire func(context.Context) (G, error)) doing {
	var mine G
	return doing{
		act: func(ctx context.Context) (err error) { mine, err = acquire(ctx); return err },
		end: func() error { return errors.Join(mine.Write(s.ctx), mine.Release(s.ctx)) },
	}
}

// until reads a stream until it delivers the last of the values. The stream must deliver no
// others.
func until[T any](s *stage, watch func(context.Context) (<-chan T, error), show func(T) string, values ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		watching, cancel := context.WithCancel(ctx)
		stream, err := watch(watching)
		if err != nil {
			cancel()
			return err
		}
		defer func() {
			cancel()
			for range stream { // drain it until it is closed
			}
		}()
		last := "nothing"
		for v := range stream {
			if s.host != nil && show(v) == last {
				s.Errorf("the stream repeats %q", last)
			}
			last = show(v)
			switch i := slices.Index(values, show(v)); i {
			case -1:
				s.Errorf("the stream delivers %q; want one of %q", show(v), values)
			case len(values) - 1:
				return nil
			}
		}
		if err := errors.Join(ctx.Err(), s.victim.Err()); err != nil {
			return err
		}
		return errors.New("the stream has ended")
	}
}

// ended waits for the loss of a grant whose znode was deleted.
func ended(g recipes.Grant) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-g.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := g.Err(); !errors.Is(err, recipes.ErrRemoved) {
			return err
		}
		return nil
	}
}

// signalled waits for a channel to be closed.
func signalled(c <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Every method of a recipe that takes a context is an operation.
func TestEveryMethodIsAnOperation(t *testing.T) {
	all := operations()
	seen := map[string]bool{}
	for _, o := range all {
		if seen[o.name] {
			t.Errorf("two operations have the name %q", o.name)
		}
		seen[o.name] = true
	}
	for _, method := range methods() {
		found := false
		for name := range seen {
			rest, is := strings.CutPrefix(name, method)
			found = found || is && (rest == "" || rest[0] == ',')
		}
		if !found {
			t.Errorf("no operation tests %s", method)
		}
	}
}

// methods are the methods with a context of all interfaces of recipes. A method that several
// interfaces share is listed once.
func methods() (names []string) {
	shared := []reflect.Type{reflect.TypeFor[recipes.Grant](), reflect.TypeFor[recipes.Hold](), reflect.TypeFor[recipes.Consumer]()}
	found := append(shared, reflect.TypeFor[recipes.Recipes]())
	for i := 0; i < len(found); i++ {
		own := found[i]
		for m := range own.Methods() {
			inherited := slices.ContainsFunc(shared[:min(i, len(shared))], func(t reflect.Type) bool {
				_, has := t.MethodByName(m.Name)
				return has && own.Implements(t)
			})
			if !inherited && m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() {
				names = append(names, own.Name()+"."+m.Name)
			}
			for result := range m.Type.Outs() {
				if result.Kind() == reflect.Interface && result.PkgPath() == own.PkgPath() && !slices.Contains(found, result) {
					found = append(found, result)
				}
			}
		}
	}
	return names
}
