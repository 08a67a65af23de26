package zkserver

import (
	"cmp"
	"crypto/rand"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Server is an in-process ZooKeeper server, which behaves as [Config.Like] says. Several
// goroutines may call its methods. It executes the requests of all connections one at a
// time.
type Server struct {
	cfg     Config
	profile *profile
	secret  []byte
	started time.Time
	done    chan struct{} // closed by Close
	wake    chan struct{} // makes expireLoop read the deadlines again

	fault   atomic.Pointer[faultHook]
	refuse  atomic.Bool
	traffic traffic

	wg sync.WaitGroup // all goroutines, and callers of ServeConn

	mu           sync.Mutex // guards everything below
	closed       bool
	expiring     bool          // expireLoop runs
	frozen       chan struct{} // non-nil while frozen, closed by the thaw
	listeners    []net.Listener
	conns        map[*conn]struct{}
	sessions     map[int64]*session
	nextSession  int64
	tree         *tree
	dataWatches  *watchTable
	childWatches *watchTable
	counters     Counters
	followers    []*Follower
	ahead        time.Duration // how far the times of transactions are ahead; see SetClock
}

// New returns a server without connections. It starts its first goroutine with the first
// connection.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	p := cfg.Like.profile()
	now := time.Now()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // its documentation says that it never fails
	return &Server{
		cfg:          cfg,
		profile:      p,
		secret:       secret,
		started:      now,
		done:         make(chan struct{}),
		wake:         make(chan struct{}, 1),
		conns:        make(map[*conn]struct{}),
		nextSession:  p.firstSession(now),
		sessions:     make(map[int64]*session),
		tree:         newTree(p),
		dataWatches:  newWatchTable(),
		childWatches: newWatchTable(),
		counters:     Counters{Requests: make(map[Op]int64)},
	}
}

// Listen starts a server on a free port of 127.0.0.1.
func Listen(cfg Config) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := New(cfg)
	s.addListener(l)
	s.wg.Go(func() { _ = s.accept(l) })
	return s, nil
}

// Serve accepts connections until l fails or the server is closed. It closes l, and
// returns nil after Close. If the process has no file descriptor left, it tries again.
func (s *Server) Serve(l net.Listener) error {
	if !s.addListener(l) {
		return l.Close()
	}
	return s.accept(l)
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners = append(s.listeners, l)
	return true
}

func (s *Server) accept(l net.Listener) error {
	defer l.Close()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
		case s.over():
			return nil
		case temporary(err):
			select {
			case <-time.After(acceptPause): // no event says that a descriptor is free
			case <-s.done:
			}
			continue
		default:
			return err
		}
		if !s.addGoroutine() {
			_ = nc.Close()
			continue
		}
		go func() {
			defer s.wg.Done()
			s.ServeConn(nc)
		}()
	}
}

// acceptPause is the wait after a temporary error of Accept.
const acceptPause = 10 * time.Millisecond

// temporary reports whether a listener can accept again after err: no file descriptor was
// left, or Accept timed out.
func temporary(err error) bool {
	ne := net.Error(nil)
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.As(err, &ne) && ne.Timeout()
}

// over reports whether the server has been closed.
func (s *Server) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Addr returns host:port of the first listener, or "" without a listener.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		return ""
	}
	return s.listeners[0].Addr().String()
}

// Close drops every connection, like a killed server, and waits for all goroutines of the
// server. Sessions and znodes are lost. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
		for _, l := range s.listeners {
			_ = l.Close()
		}
		for _, c := range s.connections() {
			c.abort()
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// addGoroutine adds a goroutine that Close waits for. It returns false if the server is closed.
func (s *Server) addGoroutine() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Add(1)
	}
	return !s.closed
}

// enlist registers a connection, and starts expireLoop with the first one. It returns false
// if the server takes no connection.
func (s *Server) enlist(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.refuse.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	s.counters.Connections++
	c.number = s.counters.Connections
	s.wg.Add(1)
	if !s.expiring {
		s.expiring = true
		s.wg.Go(s.expireLoop)
	}
	return true
}

// connections returns the connections in the order of arrival, so that a simulation can be
// repeated.
func (s *Server) connections() []*conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
}

func (s *Server) delist(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	c.gone = true
	s.detach(c)
	s.mu.Unlock()
	s.wg.Done()
}

// lockThawed waits until the server is not frozen, and locks the mutex. If the server
// closes first, it returns false without the lock.
func (s *Server) lockThawed() bool {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return false
		}
		thaw := s.frozen
		if thaw == nil {
			return true
		}
		s.mu.Unlock()
		select {
		case <-thaw:
		case <-s.done:
		}
	}
}
