package zkserver_test

import (
	"errors"
	"maps"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is a Server or one of its followers.
type server interface{ ServeConn(net.Conn) }

// simulate runs a test on virtual time, against a server over pipes.
func simulate(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{})
		defer s.Close()
		test(t, s)
	})
}

// connect opens or resumes a session over a pipe.
func connect(t *testing.T, s server, from *rawClient) *rawClient {
	t.Helper()
	return must.Get(tryConnect(s, from))(t)
}

func tryConnect(s server, from *rawClient) (*rawClient, error) {
	near, far := net.Pipe()
	go s.ServeConn(far)
	o := connectOptions{timeout: 10000}
	if from != nil {
		o.session, o.password = from.session, from.password
	}
	return handshake("c", near, o)
}

// do sends a request and returns the code of its reply. It returns an error if the
// connection ends first. It skips events before the reply.
func (c *rawClient) do(op string, words ...string) (code int32, err error) {
	p := player{}
	if err := c.send(opCodes[op], p.parse(words).body(opCodes[op])); err != nil {
		return 0, errClosed
	}
	return c.reply()
}

// ok does a request that must succeed.
func (c *rawClient) ok(t *testing.T, op string, words ...string) {
	t.Helper()
	code, err := c.do(op, words...)
	wantOK(t, code, err)
}

func (c *rawClient) reply() (code int32, err error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return 0, err
		}
		r := reader{frame}
		xid, _, code := r.i32(), r.i64(), r.i32()
		if xid != -1 {
			c.pending = c.pending[1:]
			return code, nil
		}
	}
}

func wantOK(t *testing.T, code int32, err error) {
	t.Helper()
	if code != 0 || err != nil {
		t.Fatalf("reply: %s, %v", codeName(code), err)
	}
}

func wantClosed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errClosed) {
		t.Fatalf("connection should be closed, got %v", err)
	}
}

func exists(s *zkserver.Server, path string) bool {
	for _, n := range s.Tree() {
		if n.Path == path {
			return true
		}
	}
	return false
}

func TestCountersSayWhatWasExecuted(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		before := s.Counters()
		for _, r := range [][]string{
			{"create", "/x"}, {"create", "/x"}, {"getData", "/x", "watch"}, {"ping"}, {"getChildren", "/"},
			{"auth", "scheme=digest", "secret=user:password"},
		} {
			must.Get(a.do(r[0], r[1:]...))(t)
		}
		if n := s.Watches(); n != 1 {
			t.Errorf("watches: %d", n)
		}
		must.Get(b.do("setData", "/x"))(t)
		must.Get(a.do("ping"))(t) // reads the event from the pipe
		got := s.Counters().Sub(before)
		want := map[zkserver.Op]int64{
			zkserver.OpCreate: 2, zkserver.OpGetData: 1, zkserver.OpGetChildren: 1, zkserver.OpSetData: 1,
			zkserver.OpAuth: 1,
		}
		if !maps.Equal(got.Requests, want) {
			t.Errorf("requests: %v", got.Requests)
		}
		if got.Writes != 3 || got.Reads != 2 || got.Pings != 2 || got.WatchEvents != 1 || got.Connections != 0 {
			t.Errorf("%+v", got)
		}
		if got.BytesIn == 0 || got.BytesOut == 0 || s.Watches() != 0 {
			t.Errorf("%+v, %d watches", got, s.Watches())
		}
	})
}

func TestSequenceWraps(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		c.ok(t, "create", "/p")
		must.Do(t, s.SetSequence("/p", 2147483647))
		for _, want := range []string{"/p/n-2147483647", "/p/n--2147483648", "/p/n--2147483647"} {
			c.ok(t, "create", "/p/n-", "flags=s")
			if !exists(s, want) {
				t.Errorf("no %s", want)
			}
		}
		must.Do(t, s.SetSequence("/p", -5))
		c.ok(t, "create", "/p/n-", "flags=s")
		if !exists(s, "/p/n--000000005") {
			t.Error("a negative number is not padded as in Java")
		}
		if s.SetSequence("/nope", 1) == nil {
			t.Error("no error for a missing node")
		}
	})
}

func TestReapingOnDemand(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		for _, r := range [][]string{
			{"createContainer", "/unused", "flags=c"}, {"createContainer", "/used", "flags=c"},
			{"create", "/used/x"}, {"delete", "/used/x"},
			{"createTTL", "/ttl", "flags=t", "ttl=50"},
		} {
			c.ok(t, r[0], r[1:]...)
		}
		time.Sleep(51 * time.Millisecond)
		if !exists(s, "/ttl") || !exists(s, "/used") {
			t.Fatal("reaped before the interval")
		}
		s.RunContainerCheck()
		if exists(s, "/ttl") || exists(s, "/used") || !exists(s, "/unused") {
			t.Errorf("after the check: %v", s.Tree())
		}
	})
}
