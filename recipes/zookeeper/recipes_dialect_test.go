package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// make makes a znode as another library would, with what is missing above it.
func (s *scene) make(path string, data []byte, flags int32) string {
	s.Helper()
	for i, c := range path {
		if i > 0 && c == '/' {
			if _, err := s.raw.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				s.Fatal(err)
			}
		}
	}
	made, err := s.raw.Create(path, data, flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		s.Fatal(err)
	}
	return made
}

func (s *scene) data(path string) []byte {
	s.Helper()
	data, _, err := s.raw.Get(path)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

func (s *scene) children(path string) []string {
	s.Helper()
	names, _, err := s.raw.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func (s *scene) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

func TestACounterInTheDialectOfCurator(t *testing.T) {
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		c := must[recipes.Counter](s.T)(s.session().Counter(s.path, recipes.CounterConfig{Dialect: recipes.Curator}))
		if n := must[int64](s.T)(c.Add(s.ctx, -5)); n != -5 || int64(binary.BigEndian.Uint64(s.data(s.path))) != -5 {
			t.Errorf("counted %d, and stored %x", n, s.data(s.path))
		}
		if _, err := s.raw.Set(s.path, binary.BigEndian.AppendUint64(nil, 41), -1); err != nil {
			t.Fatal(err)
		}
		if n := must[int64](s.T)(c.Add(s.ctx, 1)); n != 42 {
			t.Errorf("41 and 1 are %d", n)
		}
		if _, err := s.raw.Set(s.path, nil, -1); err != nil {
			t.Fatal(err)
		}
		if n := must[int64](s.T)(c.Get(s.ctx)); n != 0 {
			t.Errorf("without data it is %d", n)
		}
	})
}

// A number that is read in the other form would be another one.
// Curator's DistributedAtomicLong creates its znode with the first number in it, here after ours has
// found none. Neither sum is lost.
func TestACounterThatAnotherCreatesIsNotOverwritten(t *testing.T) {
	for dialect, number := range map[recipes.Dialect][]byte{
		recipes.Curator: binary.BigEndian.AppendUint64(nil, 5), recipes.Kazoo: []byte("5"), recipes.ZooKeeper: []byte("5"),
	} {
		t.Run(string(dialect), func(t *testing.T) {
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				c := must[recipes.Counter](t)(s.session().Counter(s.path, recipes.CounterConfig{Dialect: dialect}))
				var once sync.Once
				srv.SetFault(func(r zkserver.Request) zkserver.Fault {
					if r.Op == zkserver.OpMulti && r.Path == s.path {
						once.Do(func() { s.make(s.path, number, 0) })
					}
					return zkserver.Fault{}
				})
				if n, err := c.Add(s.ctx, 1); n != 6 || err != nil {
					t.Errorf("1 more than 5 is %d, %v", n, err)
				}
			})
		})
	}
}

func TestACounterRefusesTheFormOfAnotherDialect(t *testing.T) {
	for _, tt := range []struct {
		dialect recipes.Dialect
		data    string
		want    error
	}{
		{recipes.ZooKeeper, "\x00\x00\x00\x00\x00\x00\x00\x05", recipes.ErrForeign},
		{recipes.Kazoo, "\xff\xff\xff\xff\xff\xff\xff\xfb", recipes.ErrForeign},
		{recipes.ZooKeeper, "elephant", recipes.ErrInvalid},
		{recipes.Curator, "12345678", recipes.ErrForeign},
		{recipes.Curator, "5", recipes.ErrForeign},
		{recipes.Curator, "\x00\x00\x00\x05", recipes.ErrInvalid},
		{recipes.Kazoo, "1.5", recipes.ErrInvalid},
		{recipes.Kazoo, "-7", nil},
		{recipes.Curator, "\x01elephan", nil},
	} {
		onEmbedded(t, func(s *scene, _ *zkserver.Server) {
			s.make(s.path, []byte(tt.data), 0)
			c := must[recipes.Counter](s.T)(s.session().Counter(s.path, recipes.CounterConfig{Dialect: tt.dialect}))
			for _, count := range []func() (int64, error){
				func() (int64, error) { return c.Get(s.ctx) },
				func() (int64, error) { return c.Add(s.ctx, 1) },
			} {
				if _, err := count(); !errors.Is(err, tt.want) {
					t.Errorf("%s reads %q: %v; want %v", tt.dialect, tt.data, err, tt.want)
				}
			}
			if tt.want != nil && string(s.data(s.path)) != tt.data {
				t.Errorf("%s has made %q of %q", tt.dialect, s.data(s.path), tt.data)
			}
		})
	}
}

func TestAGroupInTheDialectOfKazoo(t *testing.T) {
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		theirs := s.make(s.path+"/"+strings.ReplaceAll(uuid.NewString(), "-", "")+"__party__", []byte("theirs"), zk.FlagEphemeral)
		s.make(s.path+"/stranger", nil, zk.FlagEphemeral)
		g := must[recipes.Group](s.T)(s.session().Group(s.path, recipes.GroupConfig{Dialect: recipes.Kazoo}))
		m := must[recipes.Membership](s.T)(g.Join(s.ctx, []byte("ours")))
		if name := strings.TrimSuffix(m.Znode(), "__party__"); len(name) != len(s.path)+1+32 {
			t.Errorf("ours is %s", m.Znode())
		}
		members := must[[]recipes.Member](s.T)(g.Members(s.ctx))
		if len(members) != 2 || members[0].Znode != theirs || string(members[1].Data) != "ours" {
			t.Errorf("the members are %+v", members)
		}
		if watched := <-must[<-chan []recipes.Member](s.T)(g.Watch(s.ctx)); len(watched) != 2 {
			t.Errorf("watched %+v", watched)
		}
		s.is(m.Update(s.ctx, []byte{0xff}), recipes.ErrInvalid)
		_, err := g.Join(s.ctx, []byte{0xff})
		s.is(err, recipes.ErrInvalid)
		_, err = s.session().Group(s.path, recipes.GroupConfig{Dialect: recipes.Kazoo, Name: "me"})
		s.is(err, recipes.ErrInvalid)
		if err := m.Leave(s.ctx); err != nil {
			t.Error(err)
		}
		if all := must[[]recipes.Member](s.T)(must[recipes.Group](s.T)(s.session().Group(s.path, recipes.GroupConfig{Dialect: recipes.Curator})).Members(s.ctx)); len(all) != 2 {
			t.Errorf("to Curator's form the members are %+v", all)
		}
	})
}

func TestAQueueInTheDialectOfAnotherLibrary(t *testing.T) {
	type step func(s *scene, fifo recipes.Queue, prio recipes.PriorityQueue) (recipes.ElementID, error)
	put := func(data string) step {
		return func(s *scene, q recipes.Queue, _ recipes.PriorityQueue) (recipes.ElementID, error) {
			return q.Put(s.ctx, []byte(data))
		}
	}
	prioritized := func(data string, n int) step {
		return func(s *scene, _ recipes.Queue, q recipes.PriorityQueue) (recipes.ElementID, error) {
			return q.Put(s.ctx, n, []byte(data))
		}
	}
	theirs := func(prefix, data string) step {
		return func(s *scene, _ recipes.Queue, _ recipes.PriorityQueue) (recipes.ElementID, error) {
			path := s.make(s.path+"/"+prefix, []byte(data), zk.FlagSequence)
			return recipes.ElementID(path[len(s.path)+1:]), nil
		}
	}
	for _, tt := range []struct {
		dialect recipes.Dialect
		steps   []step
		ids     []recipes.ElementID
		taken   string
	}{
		{recipes.Curator, []step{theirs("qn-", "a"), put("b"), theirs("qn-", "c")}, []recipes.ElementID{"qn-0000000000", "qn-0000000001", "qn-0000000002"}, "abc"},
		{recipes.Kazoo, []step{theirs("entry-100-", "b"), put("c"), theirs("entry-999-", "d"), prioritized("a", 7)},
			[]recipes.ElementID{"entry-100-0000000000", "entry-100-0000000001", "entry-999-0000000002", "entry-007-0000000003"}, "abcd"},
	} {
		onBoth(t, func(s *scene) {
			session := s.session()
			q := must[recipes.Queue](s.T)(session.Queue(s.path, recipes.QueueConfig{Dialect: tt.dialect}))
			p, err := session.PriorityQueue(s.path, recipes.QueueConfig{Dialect: tt.dialect})
			if tt.dialect == recipes.Curator {
				s.is(err, recipes.ErrInvalid)
			}
			for i, do := range tt.steps {
				if id, err := do(s, q, p); err != nil || id != tt.ids[i] {
					s.Fatalf("put %s: %v; want %s", id, err, tt.ids[i])
				}
			}
			if n := must[int](s.T)(q.Len(s.ctx)); n != len(tt.steps) || len(s.children(s.path)) != n {
				s.Errorf("of %d elements %d are seen, among %q", len(tt.steps), n, s.children(s.path))
			}
			taken := string(must[recipes.Element](s.T)(q.Peek(s.ctx)).Data)
			for range tt.steps {
				taken += string(must[recipes.Element](s.T)(q.Take(s.ctx)).Data)
			}
			if taken != tt.taken[:1]+tt.taken {
				s.Errorf("looked at and took %q", taken)
			}
			_, err = q.Receive(s.ctx)
			s.is(err, recipes.ErrInvalid)
			// Curator makes the path as a container, which goes when it is empty.
			if err := s.raw.Delete(s.path, -1); err != nil {
				s.Fatal(err)
			}
			if _, err := q.Put(s.ctx, []byte("again")); err != nil {
				s.Error(err)
			}
			if n := must[int](s.T)(q.Len(s.ctx)); n != 1 {
				s.Errorf("%d elements after the path was deleted and one was put", n)
			}
			for _, cfg := range []recipes.QueueConfig{{Dialect: tt.dialect, Capacity: 1}, {Dialect: tt.dialect, MaxDeliveries: 1}, {Dialect: "klingon"}} {
				_, err := s.session().Queue(s.path, cfg)
				s.is(err, recipes.ErrInvalid)
			}
		})
	}
}

// A put that lists nothing would add to a queue whose consumers do not see the element.
func TestAPutIsRefusedInAQueueOfAnotherDialect(t *testing.T) {
	for _, tt := range []struct {
		dialect recipes.Dialect
		theirs  string
		want    recipes.ForeignError
	}{
		{recipes.ZooKeeper, "qn-", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "SimpleDistributedQueue"}},
		{recipes.ZooKeeper, "entry-100-", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Queue"}},
		{recipes.Curator, "entry-100-", recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Queue"}},
		{recipes.Curator, "queue-", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Queue"}},
		{recipes.Kazoo, "queue-07-", recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: "Queue"}},
		{recipes.Kazoo, "qn-", recipes.ForeignError{Dialect: recipes.Curator, Recipe: "SimpleDistributedQueue"}},
	} {
		onEmbedded(t, func(s *scene, _ *zkserver.Server) {
			tt.want.Znode = s.make(s.path+"/"+tt.theirs, nil, zk.FlagSequence)
			q := must[recipes.Queue](s.T)(s.session().Queue(s.path, recipes.QueueConfig{Dialect: tt.dialect}))
			var got *recipes.ForeignError
			if _, err := q.Put(s.ctx, nil); !errors.As(err, &got) || *got != tt.want {
				t.Errorf("%s beside %s: %v", tt.dialect, tt.theirs, err)
			}
			if all := s.children(s.path); len(all) != 1 {
				t.Errorf("left %q", all)
			}
			if err := s.raw.Delete(tt.want.Znode, -1); err != nil {
				t.Fatal(err)
			}
			if _, err := q.Put(s.ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		s.make(s.path+"/claims", nil, 0)
		q := must[recipes.Queue](s.T)(s.session().Queue(s.path, recipes.QueueConfig{Dialect: recipes.Kazoo}))
		_, err := q.Put(s.ctx, nil)
		s.is(err, recipes.ErrForeign)
	})
}

func TestADoubleBarrierOfAnotherLibraryIsRefused(t *testing.T) {
	for _, tt := range []struct {
		member string
		want   recipes.ForeignError
	}{
		{uuid.NewString(), recipes.ForeignError{Dialect: recipes.Curator, Recipe: "DistributedDoubleBarrier"}},
		{strings.ReplaceAll(uuid.NewString(), "-", ""), recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "DoubleBarrier"}},
	} {
		onBoth(t, func(s *scene) {
			tt.want.Znode = s.make(s.path+"/"+tt.member, nil, zk.FlagEphemeral)
			b := must[recipes.DoubleBarrier](s.T)(s.session().DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 2}))
			var got *recipes.ForeignError
			if _, err := b.Enter(s.ctx, nil); !errors.As(err, &got) || *got != tt.want {
				s.Errorf("got %v, want %v", err, &tt.want)
			}
			_, stat, err := s.raw.Exists(s.path)
			if err != nil || stat.Cversion != 1 {
				s.Errorf("a member was made that theirs could count: %+v, %v", stat, err)
			}
		})
		// One that comes while ours waits counts it, and makes ready.
		onBoth(t, func(s *scene) {
			b := must[recipes.DoubleBarrier](s.T)(s.session().DoubleBarrier(s.path, recipes.DoubleBarrierConfig{Size: 2}))
			failed := make(chan error, 1)
			go func() {
				_, err := b.Enter(s.ctx, nil)
				failed <- err
			}()
			for len(s.children(s.path)) == 0 && s.ctx.Err() == nil { // each look is a round trip
			}
			s.make(s.path+"/"+tt.member, nil, zk.FlagEphemeral)
			s.make(s.path+"/ready", nil, 0)
			if err := <-failed; !errors.Is(err, recipes.ErrForeign) {
				s.Errorf("got %v, want ErrForeign", err)
			}
		})
	}
}

func TestASessionUsesAPathInOneDialect(t *testing.T) {
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		session := s.session()
		kinds := map[string]func(path string, d recipes.Dialect) error{
			"lock": func(path string, d recipes.Dialect) error {
				_, err := session.Lock(path, recipes.LockConfig{Dialect: d})
				return err
			},
			"shared lock": func(path string, d recipes.Dialect) error {
				_, err := session.SharedLock(path, recipes.SharedLockConfig{Dialect: d})
				return err
			},
			"semaphore": func(path string, d recipes.Dialect) error {
				_, err := session.Semaphore(path, recipes.SemaphoreConfig{Dialect: d, Permits: 2})
				return err
			},
			"election": func(path string, d recipes.Dialect) error {
				_, err := session.Election(path, recipes.ElectionConfig{Dialect: d})
				return err
			},
			"queue": func(path string, d recipes.Dialect) error {
				_, err := session.Queue(path, recipes.QueueConfig{Dialect: d})
				return err
			},
			"group": func(path string, d recipes.Dialect) error {
				_, err := session.Group(path, recipes.GroupConfig{Dialect: d})
				return err
			},
			"counter": func(path string, d recipes.Dialect) error {
				_, err := session.Counter(path, recipes.CounterConfig{Dialect: d})
				return err
			},
		}
		for one, first := range kinds {
			for other, second := range kinds {
				path := "/" + strings.ReplaceAll(one+"-"+other, " ", "-")
				s.is(first(path, recipes.Kazoo), nil)
				s.is(second(path, recipes.Kazoo), nil)
				for _, d := range []recipes.Dialect{"", recipes.ZooKeeper, recipes.Curator} {
					if err := second(path, d); !errors.Is(err, recipes.ErrInvalid) {
						t.Errorf("%s in kazoo, then %s in %q: %v", one, other, d, err)
					}
				}
				s.is(first(path, recipes.Kazoo), nil)
			}
		}
		_, err := session.PriorityLock("/lock-lock", recipes.PriorityLockConfig{})
		s.is(err, recipes.ErrInvalid)
	})
}

func TestContendersCountWhatIsUnknown(t *testing.T) {
	onEmbedded(t, func(s *scene, _ *zkserver.Server) {
		s.make(s.path+"/alien-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.make(s.path+"/_c_"+uuid.NewString()+"-alien-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.make(s.path+"/stays-", nil, zk.FlagSequence)
		s.make(s.path+"/unnumbered", nil, zk.FlagEphemeral)
		s.make(s.path+"/queue-", nil, zk.FlagEphemeral|zk.FlagSequence)
		s.contender(kazooLock)
		session := s.session()
		must[recipes.Membership](s.T)(must[recipes.Group](s.T)(session.Group(s.path, recipes.GroupConfig{})).Join(s.ctx, nil))
		must[recipes.Hold](s.T)(must[recipes.Lock](s.T)(session.Lock("/other", recipes.LockConfig{})).Acquire(s.ctx))
		if lines := must[recipes.Lines](s.T)(session.Contenders(s.ctx, s.path)); lines.Unknown != 2 || len(lines.Contenders) != 1 {
			t.Errorf("got %+v", lines)
		}
		if lines := must[recipes.Lines](s.T)(session.Contenders(s.ctx, s.path, recipes.KindLock)); lines.Unknown != 0 {
			t.Errorf("of locks: %+v", lines)
		}
		if lines := must[recipes.Lines](s.T)(session.Contenders(s.ctx, "/other")); lines.Unknown != 0 {
			t.Errorf("of a line of ours: %+v", lines)
		}
	})
}

// TestMembersOfKazoosDoubleBarrierAreNoContenders: they have the names of its leases. A
// semaphore has a lock beside its path since its first lease.
func TestMembersOfKazoosDoubleBarrierAreNoContenders(t *testing.T) {
	onBoth(t, func(s *scene) {
		session := s.session()
		for _, guid := range []string{strings.ReplaceAll(uuid.NewString(), "-", ""), "89abcdef0123456789abcd1234567890", "89abcdef-0123-4567-89ab-cd1234567890"} {
			s.make(s.path+"/"+guid, nil, zk.FlagEphemeral)
		}
		for _, kinds := range [][]recipes.Kind{nil, {recipes.KindSemaphore}} {
			if lines := must[recipes.Lines](s.T)(session.Contenders(s.ctx, s.path, kinds...)); lines.Unknown != 0 || len(lines.Contenders) != 0 {
				t.Errorf("of a double barrier: %+v", lines)
			}
		}
		s.make(s.path+"-__lock__", nil, 0)
		if lines := must[recipes.Lines](s.T)(session.Contenders(s.ctx, s.path)); len(lines.Contenders) != 2 || lines.Contenders[0].Dialect != recipes.Kazoo {
			t.Errorf("of a semaphore: %+v", lines)
		}
	})
}

// leases of the semaphores of other libraries.
type leaseNames struct {
	dialect     recipes.Dialect
	lease, lock string // below the path, and after it
	sequence    int32
}

var foreignLeases = []leaseNames{
	{recipes.Curator, "/leases/_c_" + uuid.NewString() + "-lease-", "/locks/_c_" + uuid.NewString() + "-lock-", zk.FlagSequence},
	{recipes.Kazoo, "/" + strings.ReplaceAll(uuid.NewString(), "-", ""), "-__lock__/" + strings.ReplaceAll(uuid.NewString(), "-", "") + "__lock__", 0},
}

func (n leaseNames) dirs(path string) (leases, locks string) {
	leases, locks = path+n.lease, path+n.lock
	return leases[:strings.LastIndexByte(leases, '/')], locks[:strings.LastIndexByte(locks, '/')]
}

func TestASemaphoreInTheDialectOfAnotherLibrary(t *testing.T) {
	for _, names := range foreignLeases {
		onBoth(t, func(s *scene) {
			theirs := s.make(s.path+names.lease, nil, zk.FlagEphemeral|names.sequence)
			leases, locks := names.dirs(s.path)
			open := func() recipes.Semaphore {
				return must[recipes.Semaphore](s.T)(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2, Dialect: names.dialect, Data: []byte("ours")}))
			}
			first := must[recipes.Hold](s.T)(open().Acquire(s.ctx))
			if all := s.children(locks); len(all) != 0 {
				s.Errorf("%s: the lock is kept: %q", names.dialect, all)
			}
			if string(s.data(first.Znode())) != "ours" || !strings.HasPrefix(first.Znode(), leases+"/") {
				s.Errorf("ours is %s", first.Znode())
			}
			_, err := open().TryAcquire(s.ctx)
			s.is(err, recipes.ErrContended)
			if all := s.children(leases); len(all) != 2 {
				s.Errorf("a try has left %q", all)
			}
			// The next one waits with the lock, and another one for it.
			granted := make(chan recipes.Hold, 2)
			for range 2 {
				joined := make(chan struct{})
				m := must[recipes.Semaphore](s.T)(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 2, Dialect: names.dialect, Joined: func(p recipes.Place) {
					if p.Position != recipes.UnknownPosition {
						s.Errorf("joined at %+v", p)
					}
					close(joined)
				}}))
				go func() {
					h, err := m.Acquire(s.ctx)
					if err != nil {
						s.Error(err)
					}
					granted <- h
				}()
				<-joined
			}
			for line := []recipes.Contender(nil); ; {
				line = must[[]recipes.Contender](s.T)(open().Contenders(s.ctx))
				if len(line) == 4 && line[0].Znode == theirs && line[1].Holds && !line[2].Holds && !line[3].Holds && line[2].Dialect == names.dialect {
					break
				}
				if s.ctx.Err() != nil {
					s.Fatalf("the line is %+v", line)
				}
			}
			if lines := must[recipes.Lines](s.T)(s.session().Contenders(s.ctx, s.path)); len(lines.Of(recipes.KindSemaphore)) != 4 || lines.Unknown != 0 {
				s.Errorf("the session sees %+v", lines)
			}
			if err := s.raw.Delete(theirs, -1); err != nil {
				s.Fatal(err)
			}
			second := <-granted
			s.release(first)
			s.release(<-granted)
			if err := second.Err(); err != nil {
				s.Error(err)
			}
			// A contender of theirs that has the lock is before ours.
			turn := s.make(s.path+names.lock, nil, zk.FlagEphemeral|zk.FlagSequence)
			_, err = open().TryAcquire(s.ctx)
			s.is(err, recipes.ErrContended)
			if err := s.raw.Delete(turn, -1); err != nil {
				s.Fatal(err)
			}
			s.release(must[recipes.Hold](s.T)(open().TryAcquire(s.ctx)))
		})
	}
}

// Somebody else may have the lock as soon as its znode is gone. A contender that waits
// on with its lease would make both wait.
func TestASemaphoreThatLosesItsLockGivesItsLeaseBack(t *testing.T) {
	for _, names := range foreignLeases {
		onBoth(t, func(s *scene) {
			theirs := s.make(s.path+names.lease, nil, zk.FlagEphemeral|names.sequence)
			leases, locks := names.dirs(s.path)
			m := must[recipes.Semaphore](s.T)(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 1, Dialect: names.dialect}))
			failed := make(chan error, 1)
			go func() {
				_, err := m.Acquire(s.ctx)
				failed <- err
			}()
			want := 1 // of leases, when it waits
			if names.dialect == recipes.Curator {
				want = 2
			}
			for len(s.children(locks)) != 1 || len(s.children(leases)) != want { // each look is a round trip
				if s.ctx.Err() != nil {
					s.Fatalf("it waits with %q and %q; want %d leases", s.children(locks), s.children(leases), want)
				}
			}
			if err := s.raw.Delete(locks+"/"+s.children(locks)[0], -1); err != nil {
				s.Fatal(err)
			}
			s.is(<-failed, recipes.ErrRemoved)
			for s.ctx.Err() == nil && len(s.children(leases)) != 1 {
			}
			if all := s.children(leases); len(all) != 1 || leases+"/"+all[0] != theirs {
				s.Errorf("left %q", all)
			}
		})
	}
}

func TestACancelledSemaphoreLeavesNothing(t *testing.T) {
	for _, names := range foreignLeases {
		onBoth(t, func(s *scene) {
			s.make(s.path+names.lease, nil, zk.FlagEphemeral|names.sequence)
			leases, locks := names.dirs(s.path)
			ctx, cancel := context.WithCancel(s.ctx)
			joined := make(chan struct{})
			m := must[recipes.Semaphore](s.T)(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: 1, Dialect: names.dialect, Joined: func(recipes.Place) { close(joined) }}))
			failed := make(chan error, 1)
			go func() {
				_, err := m.Acquire(ctx)
				failed <- err
			}()
			<-joined
			cancel()
			s.is(<-failed, context.Canceled)
			for s.ctx.Err() == nil && len(s.children(locks))+len(s.children(leases)) != 1 {
			}
			if s.ctx.Err() != nil {
				s.Errorf("left %q and %q", s.children(locks), s.children(leases))
			}
		})
	}
}

// Without the dialect ours would take permits beside those of the other library.
func TestASemaphoreOfAnotherLibraryIsSeen(t *testing.T) {
	for _, names := range foreignLeases {
		for _, permits := range []int{1, 2} {
			onBoth(t, func(s *scene) {
				_, locks := names.dirs(s.path)
				s.make(locks+"/x", nil, 0)
				theirs := s.make(s.path+names.lease, nil, zk.FlagEphemeral|names.sequence)
				m := must[recipes.Semaphore](s.T)(s.session().Semaphore(s.path, recipes.SemaphoreConfig{Permits: permits}))
				var got *recipes.ForeignError
				if _, err := m.Acquire(s.ctx); !errors.As(err, &got) || got.Dialect != names.dialect || got.Znode != theirs {
					s.Errorf("got %v", err)
				}
				if err := s.raw.Delete(theirs, -1); err != nil {
					s.Fatal(err)
				}
				// Directories that nobody uses any more do no harm.
				s.release(must[recipes.Hold](s.T)(m.Acquire(s.ctx)))
			})
		}
	}
}

// kazoo's contenders wait until there are fewer leases than permits. A lease that waits
// would keep them waiting.
func TestAContenderOfKazoosSemaphoreWaitsWithoutALease(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		open := func(s recipes.Client) recipes.Semaphore {
			return must[recipes.Semaphore](t)(s.Semaphore("/s", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Kazoo}))
		}
		first := must[recipes.Hold](t)(open(s).Acquire(ctx))
		second, next := open(openVirtual(t, srv)), make(chan recipes.Hold, 1)
		go func() { next <- must[recipes.Hold](t)(second.Acquire(ctx)) }()
		synctest.Wait()
		if leases := strings.Fields(shape(srv, "/s")); len(leases) != 1 {
			t.Errorf("there are %q while one waits", leases)
		}
		if err := errors.Join(first.Release(ctx), (<-next).Release(ctx)); err != nil {
			t.Error(err)
		}
	})
}

// A semaphore of Curator's that cannot give its lock back gives its lease back, and the
// session does not go on as if it held something.
func TestALeaseThatIsNotGrantedIsNotHeld(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
		s := openVirtual(t, srv)
		sem := must[recipes.Semaphore](t)(s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator}))
		once, cancel := context.WithCancel(ctx)
		var told atomic.Bool
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpDelete || told.Load() {
				return zkserver.Fault{}
			}
			cancel()
			return zkserver.Fault{CloseBefore: true}
		})
		_, err := sem.Acquire(once)
		if told.Store(true); !errors.Is(err, context.Canceled) {
			t.Fatalf("acquire: %v", err)
		}
		time.Sleep(time.Minute)
		syncs := must[recipes.Stats](t)(s.Stats(ctx)).ByKind["sync"]
		time.Sleep(time.Minute)
		if more := must[recipes.Stats](t)(s.Stats(ctx)).ByKind["sync"]; more != syncs {
			t.Errorf("%d syncs in a minute in which nothing was held", more-syncs)
		}
		if h, err := sem.Acquire(ctx); err != nil {
			t.Errorf("the lease was not given back: %v", err)
		} else if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
