package zktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// BarrierAt returns the barrier of a path. Its Remove deletes any znode without children.
func BarrierAt(t *testing.T, s recipes.Recipes, path string) recipes.Barrier {
	t.Helper()
	return must.Get(s.Barrier(path))(t)
}

// ConfigAt returns the configuration of a path.
func ConfigAt(t *testing.T, s recipes.Recipes, path string) recipes.Configuration {
	t.Helper()
	return must.Get(s.Configuration(path))(t)
}

// CounterAt returns the counter of a path.
func CounterAt(t *testing.T, s recipes.Recipes, path string) recipes.Counter {
	t.Helper()
	return must.Get(s.Counter(path, recipes.CounterConfig{}))(t)
}

// LatchAt returns the latch of a path.
func LatchAt(t *testing.T, s recipes.Recipes, path string, count int64) recipes.Latch {
	t.Helper()
	return must.Get(s.Latch(path, recipes.LatchConfig{Count: count}))(t)
}

// NamesAt returns the directory of names at a path.
func NamesAt(t *testing.T, s recipes.Recipes, path string) recipes.Names {
	t.Helper()
	return must.Get(s.Names(path))(t)
}

// QueueOf returns the queue of a path.
func QueueOf(t *testing.T, s recipes.Recipes, path string, cfg recipes.QueueConfig) recipes.Queue {
	t.Helper()
	return must.Get(s.Queue(path, cfg))(t)
}

// Acquire acquires the lock of /deadline.
func Acquire(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	return must.Get(must.Get(s.Lock("/deadline", recipes.LockConfig{}))(t).Acquire(t.Context()))(t)
}

// Movable has the methods of a session that move it to another process.
type Movable interface {
	recipes.Client
	ResumeTicket() []byte
	Detach(context.Context) error
	DropRest(context.Context) error
}

// Move detaches s and resumes its session as another process would.
func Move(t *testing.T, addr string, s recipes.Client) recipes.Client {
	t.Helper()
	must.Do(t, s.(Movable).Detach(Bounded(t)))
	next := must.Get(zookeeper.Resume(Bounded(t), config(addr), s.(Movable).ResumeTicket(), time.Now()))(t)
	closeAtEnd(t, next)
	return next
}

// Taker has the method of a recipe that resumes a grant.
type Taker[G recipes.Grant] interface {
	Resume(context.Context, string, recipes.Token) (G, error)
}

// GuardedWrite creates the path under the grant.
func GuardedWrite(t *testing.T, g recipes.Grant, path string) {
	t.Helper()
	if err := g.Write(Bounded(t), recipes.Create(path, nil)); err != nil {
		t.Fatalf("a guarded write: %v", err)
	}
}

// LeaseNames are the znodes of one contender of another library's semaphore.
type LeaseNames struct {
	Dialect  recipes.Dialect
	Lease    string // the lease, without the path
	Lock     string // the znode of the lock under which leases are created, without the path
	Sequence int32  // zk.FlagSequence if a sequence number is added to the names
}

// ForeignLeases are the names of Curator's semaphore and of kazoo's.
var ForeignLeases = []LeaseNames{
	{recipes.Curator, "/leases/_c_" + uuid.NewString() + "-lease-", "/locks/_c_" + uuid.NewString() + "-lock-", zk.FlagSequence},
	{recipes.Kazoo, "/" + strings.ReplaceAll(uuid.NewString(), "-", ""), "-__lock__/" + strings.ReplaceAll(uuid.NewString(), "-", "") + "__lock__", 0},
}

// Dirs returns the parents of leases and of locks for a path.
func (n LeaseNames) Dirs(path string) (leases, locks string) {
	leases, locks = path+n.Lease, path+n.Lock
	return leases[:strings.LastIndexByte(leases, '/')], locks[:strings.LastIndexByte(locks, '/')]
}

// Hooked is a session whose locks are acquired by Acquire.
type Hooked struct {
	recipes.Client
	Acquire func(context.Context, recipes.Lock) (recipes.Hold, error)
}

func (s Hooked) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.Client.Lock(path, cfg)
	return hookedLock{l, s}, err
}

type hookedLock struct {
	recipes.Lock
	session Hooked
}

func (l hookedLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	return l.session.Acquire(ctx, l.Lock)
}
