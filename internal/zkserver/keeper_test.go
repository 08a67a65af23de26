package zkserver_test

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// keepers runs a test on virtual time, against each version of Keeper over pipes.
func keepers(t *testing.T, test func(t *testing.T, s *zkserver.Server, like zkserver.Release)) {
	t.Helper()
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := zkserver.New(zkserver.Config{Like: like})
				defer s.Close()
				test(t, s, like)
			})
		})
	}
}

// join opens a session of a Keeper. With from, the handshake asks for that session and has
// seen a later transaction than the server.
func join(t *testing.T, s server, from *rawClient) *rawClient {
	t.Helper()
	near, far := net.Pipe()
	go s.ServeConn(far)
	o := connectOptions{timeout: 10000, keeper: true}
	if from != nil {
		o.session, o.password, o.lastZxid = from.session, from.password, 1<<40
	}
	return must.Get(handshake("c", near, o))(t)
}

// body sends a request that must succeed, and returns the body of its reply and its zxid.
func (c *rawClient) body(t *testing.T, op string, words ...string) (*reader, int64) {
	t.Helper()
	p := player{}
	must.Do(t, c.send(opCodes[op], p.parse(words).body(opCodes[op])))
	for {
		r := &reader{must.Get(c.frame())(t)}
		xid, zxid, code := r.i32(), r.i64(), r.i32()
		if xid == -1 {
			continue
		}
		if code != 0 {
			t.Fatalf("%s %v: %s", op, words, codeName(code))
		}
		return r, zxid
	}
}

type shownStat struct {
	cversion     int32
	owner, pzxid int64
}

func (r *reader) shownStat() (s shownStat) {
	for range 4 {
		r.i64()
	}
	r.i32()
	s.cversion = r.i32()
	r.i32()
	s.owner = r.i64()
	r.i32()
	r.i32()
	s.pzxid = r.i64()
	return s
}

func TestKeeperGivesEachConnectionANewSession(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		a := join(t, s, nil)
		a.ok(t, "create", "/e", "flags=e")
		s.CloseConnection(a.session)
		time.Sleep(4 * time.Second)
		b := join(t, s, a)
		if a.session != 1 || b.session != 2 || !bytes.Equal(b.password, make([]byte, 16)) {
			t.Errorf("sessions %d and %d, password %x", a.session, b.session, b.password)
		}
		if time.Sleep(6*time.Second - time.Millisecond); !exists(s, "/e") {
			t.Error("the first session ended before its timeout")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if exists(s, "/e") || !slices.Equal(s.Sessions(), []int64{2}) {
			t.Errorf("after the timeout of the first: sessions %v", s.Sessions())
		}
	})
}

func TestKeeperBoundsTimeouts(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		for requested, want := range map[int32]int32{1: 10000, 20000: 20000, 1000000: 100000} {
			near, far := net.Pipe()
			go s.ServeConn(far)
			c := must.Get(handshake("c", near, connectOptions{timeout: requested, keeper: true}))(t)
			if c.timeout != want {
				t.Errorf("%d ms became %d ms", requested, c.timeout)
			}
		}
	})
}

func TestKeeperEndsTheConnectionForWhatItDoesNotSupport(t *testing.T) {
	added := []string{"create2", "createContainer", "setWatches", "setWatches2", "addWatch", "checkWatches", "removeWatches"}
	never := []string{"createTTL", "multiRead", "getEphemerals", "getAllChildrenNumber"}
	keepers(t, func(t *testing.T, s *zkserver.Server, like zkserver.Release) {
		for _, op := range append(added, never...) {
			c := join(t, s, nil)
			_, err := c.do(op, "/"+op)
			if supported := err == nil; supported != (like == zkserver.Keeper26 && slices.Contains(added, op)) {
				t.Errorf("%s: %v", op, err)
			}
			if !slices.Contains(s.Sessions(), c.session) {
				t.Errorf("%s ended its session", op)
			}
		}
		c := join(t, s, nil)
		_, err := c.do("create", "/cut", "cut=2")
		wantClosed(t, err)
		c = join(t, s, nil)
		c.ok(t, "create", "/x")
		c.ok(t, "check", "/x")
	})
}

func TestKeeperEndsTheConnectionForAPartThatItDoesNotSupport(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, like zkserver.Release) {
		for part, since := range map[string]zkserver.Release{"create": zkserver.Keeper22, "create2": zkserver.Keeper26, "createTTL": 99} {
			c := join(t, s, nil)
			p := player{}
			p.send(c, "multi", nil, []string{part + " /" + part})
			_, err := c.reply()
			if supported := err == nil; supported != (like >= since) || exists(s, "/"+part) != supported {
				t.Errorf("%s: %v", part, err)
			}
		}
	})
}

func TestKeeperDoesNotAnswerAClose(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		c := join(t, s, nil)
		c.ok(t, "create", "/e", "flags=e")
		_, err := c.do("closeSession")
		wantClosed(t, err)
		if exists(s, "/e") || len(s.Sessions()) != 0 {
			t.Error("the session was not closed")
		}
	})
}

func TestKeeperHasADirectoryOfItsOwn(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, like zkserver.Release) {
		c := join(t, s, nil)
		want := map[zkserver.Release]map[string]string{
			zkserver.Keeper22: {"/keeper/api_version": "1"},
			zkserver.Keeper26: {"/keeper/api_version": "2", "/keeper/feature_flags": "\x01\x80"},
		}[like]
		for path, data := range want {
			if r, _ := c.body(t, "getData", path); string(r.blob()) != data {
				t.Errorf("%s is not %q", path, data)
			}
			for _, op := range []string{"create", "setData", "delete", "setACL", "check"} {
				if code, err := c.do(op, path); code != -8 || err != nil {
					t.Errorf("%s %s: %s, %v", op, path, codeName(code), err)
				}
			}
		}
		r, _ := c.body(t, "getChildren", "/keeper")
		if got := r.strs(); len(got) != len(want) {
			t.Errorf("children of /keeper: %q", got)
		}
		if r, _ := c.body(t, "getChildren", "/"); !slices.Equal(r.strs(), []string{"keeper"}) {
			t.Error("the root has other children")
		}
		if code, err := c.do("create", "/keeper/mine"); code != -8 || err != nil {
			t.Errorf("create below /keeper: %s, %v", codeName(code), err)
		}
		c.ok(t, "create", "/keepers")
	})
}

func TestKeeperCountsSetsOfChildrenAndNotTheirDeletions(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		c := join(t, s, nil)
		c.ok(t, "create", "/p")
		_, created := c.body(t, "create", "/p/c")
		c.ok(t, "setData", "/p/c")
		c.ok(t, "setData", "/p/c")
		c.ok(t, "delete", "/p/c")
		r, _ := c.body(t, "exists", "/p")
		if got := r.shownStat(); got.cversion != 4 || got.pzxid != created {
			t.Errorf("%+v, and the child was created in %d", got, created)
		}
	})
}

// The watch of a future sequential name never fires, but that of the name without a number does.
func TestKeeperFiresTheWatchOfTheRequestedPath(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		a, b := join(t, s, nil), join(t, s, nil)
		for _, path := range []string{"/n-", "/n-0000000000"} {
			if code, err := a.do("exists", path, "watch"); code != -101 || err != nil {
				t.Fatalf("%s, %v", codeName(code), err)
			}
		}
		b.ok(t, "create", "/n-", "flags=s")
		if !exists(s, "/n-0000000000") || s.CreationWatches() != 0 || s.Watches() != 1 {
			t.Errorf("%d watches, %d on missing znodes", s.Watches(), s.CreationWatches())
		}
	})
}

func TestKeeperLogsPingsAndSyncs(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		c := join(t, s, nil)
		_, before := c.body(t, "ping")
		for i, op := range []string{"ping", "sync", "auth"} {
			words := map[string][]string{"sync": {"/"}, "auth": {"scheme=digest", "secret=u:p"}}[op]
			c.ok(t, op, words...)
			if _, now := c.body(t, "exists", "/"); now != before+int64(i)+1 {
				t.Errorf("zxid after %s: %d, and %d before all", op, now, before)
			}
		}
	})
}

func TestKeeperShowsTheTypeOfAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{Like: zkserver.Keeper26})
		defer s.Close()
		c := join(t, s, nil)
		c.ok(t, "createContainer", "/c", "flags=c")
		if r, _ := c.body(t, "exists", "/c"); r.shownStat().owner != -1<<63 {
			t.Error("the owner is hidden")
		}
	})
}

func TestReadsOnAFollowerOfAKeeperDoNotExtendTheSession(t *testing.T) {
	for _, test := range []struct {
		op    string
		words []string
		lives bool
	}{
		{"exists", []string{"/"}, false}, {"ping", nil, true}, {"sync", []string{"/"}, true},
		{"setData", []string{"/"}, true},
	} {
		t.Run(test.op, func(t *testing.T) {
			keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
				c := join(t, s.Follower(), nil)
				for range 5 {
					time.Sleep(3 * time.Second) // virtual
					if _, err := c.do(test.op, test.words...); err != nil {
						break
					}
				}
				if lives := len(s.Sessions()) == 1; lives != test.lives {
					t.Errorf("the session lives: %v", lives)
				}
			})
		})
	}
}

func TestAFollowerOfAKeeperThatIsCutOffRejectsClientsAndHoldsPings(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, _ zkserver.Release) {
		f := s.Follower()
		c := join(t, f, nil)
		f.Late()
		rejected := join(t, f, nil)
		if rejected.session != -1 || rejected.protocol != 42 {
			t.Errorf("session %d, protocol %d", rejected.session, rejected.protocol)
		}
		_, err := rejected.frame()
		wantClosed(t, err)
		c.ok(t, "exists", "/")
		answered := make(chan error, 1)
		go func() {
			_, err := c.do("ping")
			answered <- err
		}()
		synctest.Wait()
		if len(answered) > 0 {
			t.Error("the ping was answered without the leader")
		}
		f.Heal()
		must.Do(t, <-answered)
	})
}

func TestKeeperNamesItselfInItsWords(t *testing.T) {
	keepers(t, func(t *testing.T, s *zkserver.Server, like zkserver.Release) {
		for word, want := range map[string]string{
			"srvr": "ClickHouse Keeper version: v" + like.Recorded(), "mntr": "zk_key_arena_size\t0\n", "ruok": "imok",
		} {
			near, far := net.Pipe()
			go s.ServeConn(far)
			must.Get(near.Write([]byte(word)))(t)
			answer := new(bytes.Buffer)
			must.Get(answer.ReadFrom(near))(t)
			if !strings.Contains(answer.String(), want) {
				t.Errorf("%s: %q", word, answer)
			}
		}
	})
}

func TestNamesOfReleases(t *testing.T) {
	for _, r := range append(zkserver.Releases(), zkserver.Keepers()...) {
		var back zkserver.Release
		if err := back.UnmarshalText(must.Get(r.MarshalText())(t)); err != nil || back != r {
			t.Errorf("%v became %v: %v", r, back, err)
		}
	}
	var r zkserver.Release
	if err := r.UnmarshalText([]byte("keeper")); err == nil || !strings.Contains(err.Error(), "[3.4 3.8 3.9 keeper-22.8 keeper-26.8]") {
		t.Errorf("the error does not name the releases: %v", err)
	}
}
