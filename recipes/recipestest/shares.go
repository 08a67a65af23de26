package recipestest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// sharing holds the members of a test, which share n numbers.
type sharing struct {
	*fixture
	n    int
	cfg  recipes.SharesConfig
	wake chan struct{} // receives when a member has received its numbers
}

func (f *fixture) sharing(n int, grace time.Duration) *sharing {
	return &sharing{f, n, recipes.SharesConfig{Grace: grace, Data: []byte("me")}, make(chan struct{}, 1)}
}

func (f *sharing) shares(s recipes.Client, n int) recipes.Shares {
	f.Helper()
	return must.Get(s.Shares(f.path("s"), n, f.cfg))(f)
}

// warns returns a channel that receives when a member that joins from now on warns.
func (f *sharing) warns() <-chan struct{} {
	warned := make(chan struct{}, 1)
	f.cfg.Warn = func(error) {
		select {
		case warned <- struct{}{}:
		default:
		}
	}
	return warned
}

// sharer is a member, and what it has received last.
type sharer struct {
	recipes.Portion
	session recipes.Client
	closed  chan struct{} // closed with Changes

	mu  sync.Mutex
	now map[int]recipes.Share // nil before the first value
}

func (f *sharing) join() *sharer {
	f.Helper()
	s := f.open()
	return f.joined(s, get(f.fixture, f.shares(s, f.n).Join))
}

func (f *sharing) joined(s recipes.Client, p recipes.Portion) *sharer {
	m := &sharer{Portion: p, session: s, closed: make(chan struct{})}
	go func() { // until the member or its session ends
		defer close(m.closed)
		for list := range p.Changes() {
			now := make(map[int]recipes.Share)
			for _, share := range list {
				now[share.Number()] = share
			}
			m.mu.Lock()
			m.now = now
			m.mu.Unlock()
			select {
			case f.wake <- struct{}{}:
			default:
			}
		}
	}()
	return m
}

// owns returns what the member has received last. It is nil before the first value.
func (m *sharer) owns() map[int]recipes.Share {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// until waits until holds, which depends on what the members have received, returns true.
func (f *sharing) until(what string, holds func() bool) {
	f.Helper()
	for !holds() {
		f.await(f.wake, what)
	}
}

// settled waits until the members own all numbers, evenly, and checks that each number is held by
// the member's session, with the czxid of its znode as the token.
func (f *sharing) settled(members ...*sharer) {
	f.Helper()
	f.until(fmt.Sprintf("%d numbers, even over %d members", f.n, len(members)), func() bool {
		owner, least, most := map[int]bool{}, f.n, 0
		for _, m := range members {
			for number, share := range m.owns() {
				if share.Err() != nil {
					return false
				}
				owner[number] = true
			}
			least, most = min(least, len(m.owns())), max(most, len(m.owns()))
		}
		return len(owner) == f.n && most-least <= 1
	})
	for _, m := range members {
		for number, share := range m.owns() {
			f.held(share)
			data, stat := f.read(f.path("s", "numbers", fmt.Sprint(number)))
			if recipes.Token(stat.Czxid) != share.Token() || stat.EphemeralOwner != m.session.ID() || data != "me" {
				f.Errorf("number %d with token %v: %q of %#x in %#x", number, share.Token(), data, stat.EphemeralOwner, stat.Czxid)
			}
		}
	}
}

// kept returns how many of the shares before the member still owns, with the same grant.
func (m *sharer) kept(before map[int]recipes.Share) (n int) {
	for number, share := range m.owns() {
		if before[number] == share {
			n++
		}
	}
	return n
}

func sharesTests() []test {
	return []test{
		{"a bad path, n or Grace is ErrInvalid, and nothing is sent", func(f *fixture) {
			s := f.open()
			f.sendsNothing(s, func() {
				f.is(errOf(s.Shares("s", 1, recipes.SharesConfig{})), recipes.ErrInvalid)
				f.same(fmt.Sprint(errOf(s.Shares("/", 1, recipes.SharesConfig{}))), fmt.Sprintf("shares: %v: the root cannot have shares: it holds ZooKeeper's own nodes", recipes.ErrInvalid))
				for n, named := range map[int]string{0: "n is 0", -1: "n is -1", 1<<16 + 1: "n is 65537"} {
					_, err := s.Shares("/s", n, recipes.SharesConfig{})
					f.is(err, recipes.ErrInvalid)
					f.same(fmt.Sprint(err), fmt.Sprintf("shares: %v: %s; from 1 to 65536", recipes.ErrInvalid, named))
				}
				_, err := s.Shares("/s", 1, recipes.SharesConfig{Grace: -1})
				f.is(err, recipes.ErrInvalid)
				f.same(fmt.Sprint(err), fmt.Sprintf("shares: %v: Grace is -1ns; it must not be negative", recipes.ErrInvalid))
				sh := must.Get(s.Shares("/s", 1<<16, recipes.SharesConfig{}))(f)
				f.same(sh.Path(), "/s")
			})
		}},
		{"numbers are spread evenly, and as few as possible move when members join and leave", func(fx *fixture) {
			f := fx.sharing(10, 0)
			var members []*sharer
			var before []map[int]recipes.Share
			remember := func() {
				before = nil
				for _, m := range members {
					before = append(before, m.owns())
				}
			}
			for range 4 {
				remember()
				members = append(members, f.join())
				f.settled(members...)
				moved := f.n
				for i, b := range before {
					moved -= members[i].kept(b)
				}
				if most := f.n / len(members); len(before) > 0 && moved != most {
					f.Errorf("%d of %d members have joined: %d numbers moved; want %d", len(members), 4, moved, most)
				}
			}
			for len(members) > 1 { // the assigner leaves first
				leaves := members[0]
				members = members[1:]
				remember()
				f.must(leaves.Leave(f.ctx))
				f.settled(members...)
				for i, b := range before {
					if kept := members[i].kept(b); kept != len(b) {
						f.Errorf("a member kept %d of %d numbers when another one left", kept, len(b))
					}
				}
			}
		}},
		{"the first value has all numbers that are free, also where an older assignment exists", func(fx *fixture) {
			f := fx.sharing(9, 0)
			for range 3 {
				s := f.open()
				p := get(f.fixture, f.shares(s, f.n).Join)
				list := receive(f.fixture, p.Changes(), "the first value")
				f.failIf(len(list) != f.n, "%d numbers; want %d", len(list), f.n)
				f.must(s.Close(f.ctx))
				drained(f.fixture, p.Changes(), "the channel of a closed session")
			}
		}},
		{"more members than numbers: some own none", func(fx *fixture) {
			f := fx.sharing(2, 0)
			a, b, c := f.join(), f.join(), f.join()
			f.settled(a, b, c)
			f.until("an empty list", func() bool { return c.owns() != nil && len(c.owns()) == 0 })
		}},
		{"a share guards writes, also beside other grants, and its number never changes", func(fx *fixture) {
			f := fx.sharing(2, 0)
			m := f.join()
			f.settled(m)
			zero, one := m.owns()[0], m.owns()[1]
			f.create(f.path("x"), "")
			f.must(zero.Write(f.ctx, recipes.Held(one), recipes.Set(f.path("x"), nil, 0)))
			lock := f.acquire(m.session, f.path("lock"))
			f.must(lock.Write(f.ctx, recipes.Held(one), recipes.Set(f.path("x"), nil, 1)))
			f.failIf(!zero.ValidUntil().After(time.Now()), "valid until %v", zero.ValidUntil())
			f.must(m.Leave(f.ctx))
			f.lost(zero, recipes.ErrReleased)
			f.forbidden(zero, recipes.ErrReleased)
			f.is(lock.Write(f.ctx, recipes.Held(one)), recipes.ErrNotHeld)
			f.held(lock)
			f.failIf(zero.Number() != 0, "number %d", zero.Number())
		}},
		{"a number that moves is revoked, and no other member owns it before it is released", func(fx *fixture) {
			f := fx.sharing(2, time.Hour)
			a := f.join()
			f.settled(a)
			all := a.owns()
			b := f.join()
			f.until("a number that moves", func() bool { return len(a.owns()) == 1 })
			f.until("the first value", func() bool { return b.owns() != nil })
			f.failIf(len(b.owns()) != 0, "owned by two: %v", b.owns())
			for number, share := range all {
				if a.owns()[number] != nil {
					f.failIf(closedNow(share.Revoked()), "number %d is revoked and owned", number)
					continue
				}
				f.await(share.Revoked(), "the revocation")
				f.held(share)
				f.must(share.Write(f.ctx))
				f.must(share.Release(f.ctx))
				f.lost(share, recipes.ErrReleased)
				f.settled(a, b)
				if got := b.owns()[number]; got == nil || got.Token() <= share.Token() {
					f.Errorf("after the token %v of number %d: %v", share.Token(), number, got)
				}
			}
		}},
		{"after the grace a number is given up", func(fx *fixture) {
			f := fx.sharing(2, time.Millisecond)
			a := f.join()
			f.settled(a)
			all := slices.Collect(maps.Values(a.owns()))
			f.settled(a, f.join())
			for _, share := range all {
				if closedNow(share.Revoked()) {
					f.lost(share, recipes.ErrReleased)
				}
			}
		}},
		{"a member that dies frees its numbers at its session's end, also if it has assigned", func(fx *fixture) {
			for _, dead := range []int{0, 1} {
				f := fx.sharing(5, time.Hour)
				f.root += fmt.Sprint("-", dead)
				s := []recipes.Client{f.open(), f.open()}
				var members []*sharer
				p := get(f.fixture, f.shares(s[0], f.n).Join)
				members = append(members, f.joined(s[0], p))
				f.settled(members...)
				all := members[0].owns()
				members = append(members, f.joined(s[1], get(f.fixture, f.shares(s[1], f.n).Join)))
				for _, share := range all {
					if members[0].owns()[share.Number()] == nil || closedNow(share.Revoked()) {
						f.must(share.Release(f.ctx))
					}
				}
				f.until("all are settled", func() bool { // shares that are revoked later are released here
					for _, share := range all {
						if closedNow(share.Revoked()) {
							f.must(share.Release(f.ctx))
						}
					}
					return len(members[0].owns()) == 3 && len(members[1].owns()) == 2
				})
				lost := members[dead].owns()
				f.expire(s[dead])
				for _, share := range lost {
					f.lost(share, recipes.ErrExpired)
					f.await(share.Revoked(), "Revoked of a lost share")
				}
				f.await(members[dead].Done(), "the end of the member")
				f.is(members[dead].Err(), recipes.ErrExpired, recipes.ErrNotHeld)
				f.is(members[dead].Leave(f.ctx), recipes.ErrExpired)
				f.await(members[dead].closed, "the end of Changes")
				f.settled(members[1-dead])
			}
		}},
		{"members with another n are refused with ErrMismatch, and nothing moves", func(fx *fixture) {
			f := fx.sharing(3, 0)
			m := f.join()
			f.settled(m)
			before := m.owns()
			f.is(errOf(f.shares(f.open(), 4).Join(f.ctx)), recipes.ErrMismatch)
			must.Get(f.outside.Sync(f.path("s", "members")))(f)
			f.failIf(len(f.children(f.path("s", "members"))) != 1, "the refused member has not left")
			f.settled(m)
			f.failIf(m.kept(before) != 3, "%v moved", before)
		}},
		{"Leave gives up everything, and nothing is left", func(fx *fixture) {
			f := fx.sharing(3, time.Hour)
			m := f.join()
			f.settled(m)
			before := m.owns()
			leaves := startErr(f.fixture, func() error { return m.Leave(f.ctx) })
			f.until("an empty list", func() bool { return len(m.owns()) == 0 })
			f.await(m.Done(), "the end of the member")
			f.is(m.Err(), recipes.ErrReleased)
			f.is(m.Leave(f.ended()), context.Canceled)
			for _, share := range before {
				f.await(share.Revoked(), "the revocation")
				f.held(share)
				leaves.blocked(f.fixture)
				f.must(share.Release(f.ctx))
			}
			leaves.must(f.fixture)
			f.await(m.closed, "the end of Changes")
			f.must(m.Leave(f.ctx))
			f.empty(f.path("s", "members"), f.path("s", "assigner"), f.path("s", "numbers"))
		}},
		{"a number that is released as soon as the member has ended is not taken again", func(fx *fixture) {
			f := fx.sharing(30, time.Hour)
			m := f.join()
			f.settled(m)
			before := m.owns()
			leaves := startErr(f.fixture, func() error { return m.Leave(f.ctx) })
			f.await(m.Done(), "the end of the member")
			for _, share := range before {
				go share.Release(f.ctx)
			}
			leaves.must(f.fixture)
			f.empty(f.path("s", "numbers"))
		}},
		{"a number that is lost or released without being revoked is taken again, with a larger token", func(fx *fixture) {
			f := fx.sharing(2, 0)
			m := f.join()
			f.settled(m)
			for _, end := range []func(recipes.Share){
				func(s recipes.Share) { f.remove(s.Znode()); f.lost(s, recipes.ErrRemoved) },
				func(s recipes.Share) { f.must(s.Release(f.ctx)) },
			} {
				before := m.owns()
				end(before[1])
				f.until("another hold of the number", func() bool { return m.owns()[1] != nil && m.owns()[1] != before[1] })
				f.failIf(m.owns()[1].Token() <= before[1].Token(), "token %v after %v", m.owns()[1].Token(), before[1].Token())
				f.failIf(m.owns()[0] != before[0], "number 0 was lost too")
				f.settled(m)
			}
		}},
		{"a member that cannot give up a number ends, and its session's end frees the number", func(fx *fixture) {
			f := fx.sharing(2, 0)
			a := f.join()
			f.settled(a)
			f.acl(f.path("s", "numbers"), zk.PermAll&^zk.PermDelete)
			b := f.join()
			f.await(a.Done(), "the end of the member")
			f.is(a.Err(), recipes.ErrAccessDenied)
			f.is(a.Leave(f.ctx), recipes.ErrAccessDenied)
			f.acl(f.path("s", "numbers"), zk.PermAll)
			f.must(a.session.Close(f.ctx))
			f.settled(b)
		}},
		{"a member whose znode was deleted gives up its numbers", func(fx *fixture) {
			f := fx.sharing(3, 0)
			a, b := f.join(), f.join()
			f.settled(a, b)
			own := get(f.fixture, f.group(f.open(), f.path("s", "members"), "").Members)
			f.failIf(len(own) != 2 || string(own[0].Data) != "n=3 me", "members %+v", own)
			f.remove(own[0].Znode)
			f.await(a.Done(), "the end of the member")
			f.is(a.Err(), recipes.ErrRemoved)
			f.settled(b)
			f.await(a.closed, "the end of Changes")
			f.must(a.session.Err())
		}},
		{"a deleted assigner campaigns again", func(fx *fixture) {
			f := fx.sharing(3, 0)
			a := f.join()
			f.settled(a)
			f.remove(f.only(f.path("s", "assigner")))
			f.awaitChildren(f.path("s", "assigner"), 1)
			f.settled(a, f.join())
		}},
		{"Join waits for an assigner, and a cancelled one leaves nothing", func(fx *fixture) {
			f := fx.sharing(3, 0)
			other := f.lead(f.open(), f.path("s", "assigner"))
			ctx, cancel := context.WithCancel(f.ctx)
			s := f.open()
			joins := start(f.fixture, func() (recipes.Portion, error) { return f.shares(s, f.n).Join(ctx) })
			f.awaitChildren(f.path("s", "assigner"), 2)
			joins.blocked(f.fixture)
			cancel()
			f.is(joins.failure(f.fixture), context.Canceled)
			f.awaitChildren(f.path("s", "members"), 0)
			f.awaitChildren(f.path("s", "assigner"), 1)
			f.held(other)
			f.must(s.Err())
		}},
		{"a wrong assignment gives no number to two members", func(fx *fixture) {
			f := fx.sharing(2, 0)
			assigner := f.lead(f.open(), f.path("s", "assigner"))
			var joins []*pending[recipes.Portion]
			sessions := []recipes.Client{f.open(), f.open()}
			for i, s := range sessions { // the first is the oldest member
				joins = append(joins, start(f.fixture, func() (recipes.Portion, error) { return f.shares(s, f.n).Join(f.ctx) }))
				f.awaitChildren(f.path("s", "members"), i+1)
			}
			var tokens []int64
			for _, name := range f.children(f.path("s", "members")) {
				_, stat := f.read(f.path("s", "members", name))
				tokens = append(tokens, stat.Czxid)
			}
			f.must(assigner.Write(f.ctx, recipes.Set(f.path("s"), fmt.Appendf(nil,
				`{"n":2,"members":{"%d":[0,1],"%d":[0,1]}}`, tokens[0], tokens[1]), recipes.AnyVersion)))
			a, b := f.joined(sessions[0], joins[0].must(f.fixture)), f.joined(sessions[1], joins[1].must(f.fixture))
			f.until("each number once", func() bool {
				return a.owns() != nil && b.owns() != nil && len(a.owns())+len(b.owns()) == 2
			})
			f.awaitChildren(f.path("s", "numbers"), 2)
			f.must(assigner.Resign(f.ctx)) // one of the members repairs it
			// Until then they may own 1 and 0, which is even too.
			f.until("0 for the oldest, 1 for the other", func() bool {
				return len(a.owns()) == 1 && a.owns()[0] != nil && len(b.owns()) == 1 && b.owns()[1] != nil
			})
			f.settled(a, b)
		}},
		{"an assignment that another client has overwritten is written again", func(fx *fixture) {
			f := fx.sharing(3, 0)
			a, b := f.join(), f.join()
			f.settled(a, b)
			assigned, _ := f.read(f.path("s"))
			f.failIf(assigned[:7] != `{"n":3,`, "assignment %q", assigned)
			values := f.watchKey(f.config(a.session, f.path("s")), "")
			f.turns(values, assigned, false)
			_, err := f.outside.Set(f.path("s"), []byte("{"), -1)
			f.must(err)
			f.turns(values, assigned, false)
			f.settled(a, b, f.join())
		}},
		{"a member that cannot be read is refused, and harms no other", func(fx *fixture) {
			f := fx.sharing(4, 0)
			warned := f.warns()
			small := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			a := f.joined(small, get(f.fixture, f.shares(small, f.n).Join)) // this member assigns
			b := f.join()
			f.settled(a, b)
			before := []map[int]recipes.Share{a.owns(), b.owns()}
			secret := f.open(func(c *recipes.SessionConfig) {
				c.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
				c.Digest = &recipes.Digest{User: "secret", Password: "secret"}
			})
			f.is(errOf(f.shares(secret, f.n).Join(f.ctx)), recipes.ErrMismatch)
			f.await(warned, "a warning")
			f.must(secret.Close(f.ctx))
			large := f.open()
			f.cfg.Data = make([]byte, 9<<10)
			f.is(errOf(f.shares(large, f.n).Join(f.ctx)), recipes.ErrMismatch)
			f.cfg.Data = []byte("me")
			f.settled(a, b)
			f.failIf(a.kept(before[0]) != 2 || b.kept(before[1]) != 2, "numbers moved")
		}},
		{"children of another program are ignored, whatever they are", func(fx *fixture) {
			f := fx.sharing(4, 0)
			warned := f.warns()
			a := f.join()
			for name, acl := range map[string]int32{"readable": zk.PermAll, "secret": zk.PermAll &^ zk.PermRead} {
				must.Get(f.outside.Create(f.path("s", "members", name), []byte("x"), zk.FlagEphemeral, zk.WorldACL(acl)))(f)
				f.await(warned, "a warning")
			}
			b := f.join()
			f.settled(a, b)
			f.must(a.Leave(f.ctx)) // the next candidate assigns
			f.settled(b, f.join())
		}},
		{"a member that was accepted stays when another one, which cannot read it, assigns", func(fx *fixture) {
			f := fx.sharing(4, 0)
			a := f.join()
			f.cfg.Data = make([]byte, 9<<10)
			b := f.join()
			f.cfg.Data = []byte("me")
			small := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			c := f.joined(small, get(f.fixture, f.shares(small, f.n).Join))
			f.until("parts of all", func() bool { return len(a.owns()) == 2 && len(b.owns()) == 1 && len(c.owns()) == 1 })
			f.must(b.Leave(f.ctx)) // this member would be the next assigner
			f.settled(a, c)
		}},
		{"a third-party candidate keeps no member from staying, and the members assign when it is gone", func(fx *fixture) {
			f := fx.sharing(4, 0)
			warned := f.warns()
			a := f.join()
			f.settled(a)
			foreign := must.Get(f.outside.Create(f.path("s", "assigner", "lock-"), nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)))(f)
			s := f.open()
			joins := start(f.fixture, func() (recipes.Portion, error) { return f.shares(s, f.n).Join(f.ctx) })
			f.await(warned, "a warning")
			f.remove(foreign)
			b := f.joined(s, joins.must(f.fixture))
			f.settled(a, b)
			f.must(a.Leave(f.ctx))
			f.settled(b, f.join())
		}},
		{"a number whose znode cannot be watched is taken when it is free", func(fx *fixture) {
			f := fx.sharing(2, time.Hour)
			a := f.join()
			f.settled(a)
			all := a.owns()
			for _, share := range all {
				f.acl(share.Znode(), zk.PermAll&^zk.PermRead)
			}
			warned := f.warns()
			b := f.join()
			f.await(warned, "a warning")
			f.until("the request to give a number up", func() bool { return len(a.owns()) == 1 }) // b may read the assignment first
			for _, share := range all {
				if a.owns()[share.Number()] == nil {
					f.must(share.Release(f.ctx))
				}
			}
			f.until("a number each", func() bool { return len(a.owns()) == 1 && len(b.owns()) == 1 })
			f.failIf(b.Err() != nil, "%v", b.Err())
		}},
		{"a member whose packets are too small for the assignment ends, and harms no other", func(fx *fixture) {
			f := fx.sharing(4, 0)
			warned := f.warns()
			small := f.open(func(c *recipes.SessionConfig) { c.MaxPacket = 8 << 10 })
			a := f.joined(small, get(f.fixture, f.shares(small, f.n).Join)) // this member assigns
			f.settled(a)
			for i := range 60 {
				name := fmt.Sprintf("%s%d", strings.Repeat("x", 200), i)
				must.Get(f.outside.Create(f.path("s", "members", name), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))(f)
			}
			f.await(warned, "a warning")
			b := f.join()
			f.await(a.Done(), "the end of the member")
			f.is(a.Err(), recipes.ErrTooLarge)
			f.settled(b, f.join())
		}},
		{"a member that cannot write the assignment leaves that to others, and stays", func(fx *fixture) {
			f := fx.sharing(4, 0)
			a := f.join()
			f.settled(a)
			warned := f.warns()
			f.acl(f.path("s"), zk.PermAll&^zk.PermWrite)
			s := f.open()
			joins := start(f.fixture, func() (recipes.Portion, error) { return f.shares(s, f.n).Join(f.ctx) })
			f.await(warned, "a warning") // the warning of the new assigner; a has none
			f.acl(f.path("s"), zk.PermAll)
			f.settled(a, f.joined(s, joins.must(f.fixture)))
		}},
		{"Join returns why its member could not assign", func(fx *fixture) {
			f := fx.sharing(2, 0)
			// Not a container, which the server could delete together with its ACL.
			f.create(f.path("s"), "")
			f.acl(f.path("s"), zk.PermAll&^zk.PermWrite)
			ctx, cancel := context.WithCancel(f.ctx)
			f.cfg.Warn = func(error) { cancel() }
			err := errOf(f.shares(f.open(), f.n).Join(ctx))
			f.is(err, context.Canceled, recipes.ErrAccessDenied)
			f.acl(f.path("s"), zk.PermAll)
			f.settled(f.join())
		}},
		{"a lost connection changes nothing, and no change is missed", func(fx *fixture) {
			f := fx.sharing(4, 0)
			a, b := f.join(), f.join()
			f.settled(a, b)
			before := []map[int]recipes.Share{a.owns(), b.owns()}
			for _, m := range []*sharer{a, b} {
				f.sever(m.session)
				f.reconnect(m.session)
			}
			f.settled(a, b)
			f.failIf(a.kept(before[0]) != 2 || b.kept(before[1]) != 2, "numbers moved")
			f.sever(b.session)
			c := f.join()
			f.reconnect(b.session)
			f.settled(a, b, c)
		}},
	}
}

func closedNow(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
