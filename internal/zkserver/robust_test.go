package zkserver_test

import (
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

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestClientThatDoesNotReadDelaysNobody(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		slow, other := connect(t, s, nil), connect(t, s, nil)
		code, err := other.do("setData", "/", "size=100000")
		wantOK(t, code, err)
		for range 20 {
			if err := slow.send(4, args{path: "/"}.body(4)); err != nil {
				t.Fatal(err)
			}
		}
		code, err = other.do("getData", "/")
		wantOK(t, code, err)
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

func TestServeOutlivesAWantOfFileDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := &exhausted{Listener: l}
	out.times.Store(3)
	s := zkserver.New(zkserver.Config{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(out) }()
	c, err := dial("c", l.Addr().String(), connectOptions{timeout: 4000})
	if err != nil {
		t.Fatalf("%v; Serve: %v", err, <-served)
	}
	code, err := c.do("exists", "/")
	wantOK(t, code, err)
	s.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServeReturnsNilAfterClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := zkserver.New(zkserver.Config{})
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	c, err := dial("c", l.Addr().String(), connectOptions{timeout: 4000})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() != l.Addr().String() {
		t.Errorf("Addr: %s", s.Addr())
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, err = c.do("ping")
	wantClosed(t, err)
}

func TestLargestPacketAndOneByteMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{MaxPacket: 100})
		defer s.Close()
		c := connect(t, s, nil)
		const rest = 8 + 4 + 1 + 4 + 4 // headers, path, length, version
		code, err := c.do("setData", "/", "data="+strings.Repeat("x", 100-rest))
		wantOK(t, code, err)
		_, err = c.do("setData", "/", "data="+strings.Repeat("x", 101-rest))
		wantClosed(t, err)
	})
}

func TestAnnouncedLengthsCostNothing(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		var head buf
		head.i32(0xfffff)
		if _, err := c.nc.Write(head.b); err != nil {
			t.Fatal(err)
		}
		before := s.Counters().BytesIn
		if _, err := c.nc.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := s.Counters().BytesIn; n != before {
			t.Errorf("counted %d bytes of a packet that did not come", n-before)
		}
		c.nc.Close()
	})
}

func TestWordsWork(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		for word, want := range map[string]string{
			"ruok": "imok", "srvr": "Mode: standalone", "mntr": "zk_znode_count\t5\n",
		} {
			near, far := net.Pipe()
			go s.ServeConn(far)
			if _, err := near.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
			var answer strings.Builder
			for b := make([]byte, 4096); ; {
				n, err := near.Read(b)
				answer.Write(b[:n])
				if err != nil {
					break
				}
			}
			if !strings.Contains(answer.String(), want) {
				t.Errorf("%s: %q", word, answer.String())
			}
		}
	})
}

// TestChaos has many clients under all faults. The race detector, a panic or a hang shows
// a mistake, and the counts must agree afterwards.
func TestChaos(t *testing.T) {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
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
	var meddler sync.WaitGroup
	meddler.Go(func() {
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
	meddler.Wait()
	s.SetFault(nil)
	for _, id := range s.Sessions() {
		s.ExpireSession(id)
	}
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 {
			t.Errorf("orphan %s", n.Path)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := s.Watches(); n != 0 {
		t.Errorf("%d watches of nobody", n)
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
