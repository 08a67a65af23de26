package zkserver_test

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestAClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		slow, other := connect(t, s, nil), connect(t, s, nil)
		other.ok(t, "setData", "/", "size=100000")
		for range 20 {
			must.Do(t, slow.send(4, args{path: "/"}.body(4)))
		}
		other.ok(t, "getData", "/")
		for range 20 {
			code, err := slow.reply()
			wantOK(t, code, err)
		}
	})
}

// exhausted is a listener of a process that has no file descriptors left at first.
type exhausted struct {
	net.Listener
	times atomic.Int64
}

func (e *exhausted) Accept() (net.Conn, error) {
	if e.times.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return e.Listener.Accept()
}

func TestServeRetriesWithoutFileDescriptors(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	out := &exhausted{Listener: l}
	out.times.Store(3)
	s := zkserver.New(zkserver.Config{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(out) }()
	c, err := dial("c", l.Addr().String(), connectOptions{timeout: 4000})
	if err != nil {
		t.Fatalf("%v; Serve: %v", err, <-served)
	}
	c.ok(t, "exists", "/")
	s.Close()
	must.Report(t, <-served)
}

func TestServeReturnsNilAfterClose(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := zkserver.New(zkserver.Config{})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	c := must.Get(dial("c", l.Addr().String(), connectOptions{timeout: 4000}))(t)
	if s.Addr() != l.Addr().String() {
		t.Errorf("Addr: %s", s.Addr())
	}
	for range 2 {
		must.Do(t, s.Close())
	}
	must.Report(t, <-served)
	_, err := c.do("ping")
	wantClosed(t, err)
}

func TestLargestPacketAndOneByteMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{MaxPacket: 100})
		defer s.Close()
		c := connect(t, s, nil)
		const rest = 8 + 4 + 1 + 4 + 4 // headers, path, length, version
		c.ok(t, "setData", "/", "data="+strings.Repeat("x", 100-rest))
		_, err := c.do("setData", "/", "data="+strings.Repeat("x", 101-rest))
		wantClosed(t, err)
	})
}

func TestFourLetterWords(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		for word, want := range map[string]string{
			"ruok": "imok", "srvr": "Mode: standalone", "mntr": "zk_znode_count\t5\n",
		} {
			near, far := net.Pipe()
			go s.ServeConn(far)
			must.Get(near.Write([]byte(word)))(t)
			answer := must.Get(io.ReadAll(near))(t)
			if !strings.Contains(string(answer), want) {
				t.Errorf("%s: %q", word, answer)
			}
		}
	})
}

// TestChaos runs many clients under all faults. A mistake shows as a race, a panic or a
// hang, or leaves an ephemeral znode or a watch.
func TestChaos(t *testing.T) {
	s := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	release := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	s.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch rand.IntN(60) {
		case 0:
			return zkserver.Fault{CloseBefore: true}
		case 1:
			return zkserver.Fault{DropReply: true}
		case 2:
			return zkserver.Fault{CloseAfter: true}
		case 3:
			return zkserver.Fault{ExpireBefore: true}
		case 4:
			return zkserver.Fault{ExpireAfter: true}
		case 5:
			return zkserver.Fault{Hold: release}
		case 6:
			return zkserver.Fault{HoldReply: release}
		}
		return zkserver.Fault{}
	})
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() { chaosClient(t, s) })
	}
	stop := make(chan struct{})
	var operator sync.WaitGroup
	operator.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			s.Freeze(true)
			s.Freeze(false)
			if ids := s.Sessions(); len(ids) > 0 {
				s.CloseConnection(ids[i%len(ids)])
			}
			s.Tree()
			s.Counters()
		}
	})
	clients.Wait()
	close(stop)
	operator.Wait()
	s.SetFault(nil)
	for _, id := range s.Sessions() {
		s.ExpireSession(id)
	}
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 {
			t.Errorf("orphan %s", n.Path)
		}
	}
	must.Report(t, s.Close())
	if n := s.Watches(); n != 0 {
		t.Errorf("%d watches left", n)
	}
}

func chaosClient(t *testing.T, s *zkserver.Server) {
	var c *rawClient
	requests := [][]string{
		{"create", "/n-", "flags=es"}, {"getChildren", "/", "watch"}, {"setData", "/"},
		{"getData", "/", "watch"}, {"exists", "/nope", "watch"}, {"ping"},
	}
	for range 200 {
		if c == nil {
			var err error
			c, err = dial("c", s.Addr(), connectOptions{timeout: 30000})
			if err != nil {
				c = nil
				continue
			}
		}
		r := requests[rand.IntN(len(requests))]
		if _, err := c.do(r[0], r[1:]...); err != nil {
			c.nc.Close()
			if back, err := dial("c", s.Addr(), connectOptions{timeout: 30000, session: c.session, password: c.password}); err == nil && back.session != 0 {
				c = back
			} else {
				c = nil
			}
		}
	}
	if c != nil {
		c.nc.Close()
	}
}
