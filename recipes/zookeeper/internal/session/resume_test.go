package session_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// everywhere runs test on an in-process server and on a real one.
func everywhere(t *testing.T, test func(t *testing.T, cfg recipes.SessionConfig)) {
	t.Run("embedded", func(t *testing.T) { test(t, to(embedded(t))) })
	t.Run("real", func(t *testing.T) { test(t, recipes.SessionConfig{Servers: ensembletest.Shared(t).Addrs()}) })
}

func letGo(t *testing.T, s *session.Session) session.Ticket {
	t.Helper()
	ticket := must.Get(s.LetGo(zktest.Bounded(t)))(t)
	return ticket
}

// carried returns the ticket as another process would receive it.
func carried(t *testing.T, ticket session.Ticket, contact time.Time) session.Ticket {
	t.Helper()
	read := must.Get(session.ParseTicket(ticket.Bytes(), contact))(t)
	return read
}

func resume(t *testing.T, cfg recipes.SessionConfig, ticket session.Ticket) *session.Session {
	t.Helper()
	s := must.Get(session.Resume(zktest.Bounded(t), cfg, nil, ticket))(t)
	t.Cleanup(func() { closeNow(s) })
	return s
}

// After LetGo, Close does not close the session at the server. In the process that has resumed the
// session, Close closes it there.
func TestASessionThatWasLetGoIsResumed(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg recipes.SessionConfig) {
		first, ctx := open(t, cfg), zktest.Bounded(t)
		place := bare(t, first, "/resumed-"+t.Name()[strings.LastIndex(t.Name(), "/")+1:])
		ticket := carried(t, letGo(t, first), time.Now())
		must.Do(t, first.Close(ctx))
		second := resume(t, cfg, ticket)
		if stat := must.Get(second.Stat(ctx, place.Path))(t); stat.Czxid != place.Stat.Czxid || stat.EphemeralOwner != first.ID() {
			t.Errorf("the place: %+v", stat)
		}
		must.Do(t, second.Close(ctx))
		if _, err := open(t, cfg).Stat(ctx, place.Path); !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("the place after Close: %v", err)
		}
	})
}

// CreateNamed does not take a znode from before Resume for one that it has just created.
func TestAResumedSessionRecognizesEarlierZnodes(t *testing.T) {
	srv := embedded(t)
	first, ctx := open(t, to(srv)), zktest.Bounded(t)
	must.Get(first.CreateNamed(ctx, "/name", nil))(t)
	second := resume(t, to(srv), letGo(t, first))
	cut := false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op != zkserver.OpCreate || cut {
			return zkserver.Fault{}
		}
		cut = true
		return zkserver.Fault{CloseBefore: true}
	})
	if _, err := second.CreateNamed(ctx, "/name", nil); !errors.Is(err, recipes.ErrNodeExists) {
		t.Errorf("the name was given to its owner again: %v", err)
	}
}

func TestATicketThatCannotBeResumed(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg recipes.SessionConfig) {
		s, ctx := open(t, cfg), zktest.Bounded(t)
		path := must.Get(s.CreateProtected(ctx, "/worthless", "lock-", nil))(t)
		refused := func(what string, cfg recipes.SessionConfig, ticket session.Ticket, want error) {
			t.Helper()
			got, err := session.Resume(ctx, cfg, nil, ticket)
			if got != nil || !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
			if b := ticket.Bytes(); err != nil && b != nil && strings.Contains(err.Error(), string(b[16:32])) {
				t.Errorf("%s: the error shows the password", what)
			}
		}
		refused("no ticket", cfg, session.Ticket{}, recipes.ErrInvalid)

		forged := s.Ticket().Bytes()
		forged[4+8+4] ^= 1 // the first byte of the password
		ticket := must.Get(session.ParseTicket(forged, time.Now()))(t)
		refused("a forged password", cfg, ticket, recipes.ErrExpired)

		foreign := s.Ticket().Bytes()
		foreign[4+7] ^= 1 // the last byte of the id
		ticket = must.Get(session.ParseTicket(foreign, time.Now()))(t)
		refused("the ticket of an unknown session", cfg, ticket, recipes.ErrExpired)
		refused("a ticket for other servers", to(embedded(t)), s.Ticket(), recipes.ErrExpired)

		gone := open(t, cfg)
		ticket = gone.Ticket()
		must.Do(t, gone.Close(ctx))
		refused("the ticket of a session that was closed", cfg, ticket, recipes.ErrExpired)

		late := carried(t, s.Ticket(), time.Now().Add(-s.Timeout()))
		refused("a ticket whose deadline has passed", cfg, late, recipes.ErrDeadline)

		if _, err := s.Stat(ctx, path); err != nil {
			t.Errorf("the session that could not be resumed with a bad ticket: %v", err)
		}
	})
}

// servers dials a server until the test stops it.
type servers struct {
	*zkserver.Server
	down bool
}

func (s *servers) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if s.down {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return pipe(s.Server), nil
}

// Until the server has answered, the deadline counts from the last contact of the earlier
// process. Afterwards it counts from the handshake.
func TestTheDeadlineMovesWithTheSession(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 20 * time.Second
		srv := &servers{Server: zkserver.New(zkserver.Config{})}
		defer srv.Close()
		cfg := recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout, MaxPacket: 64 << 10}
		s := must.Get(session.Open(t.Context(), cfg, srv.dial))(t)
		beginHold(t, s)
		time.Sleep(10 * timeout) // virtual
		ticket := must.Get(s.LetGo(t.Context()))(t)

		time.Sleep(timeout / 4)
		s = must.Get(session.Resume(t.Context(), cfg, srv.dial, ticket))(t)
		if age := time.Since(s.KnownContact()); age >= timeout/4 {
			t.Errorf("after the handshake the contact is %v old", age)
		}
		contact := s.KnownContact()
		ticket = must.Get(s.LetGo(t.Context()))(t)

		srv.down = true
		time.Sleep(timeout / 4)
		ctx, cancel := context.WithTimeout(t.Context(), 10*timeout)
		defer cancel()
		_, err := session.Resume(ctx, cfg, srv.dial, ticket)
		const cleanUp = 2 * time.Second // of go-zookeeper
		if took := time.Since(contact); !errors.Is(err, recipes.ErrDeadline) || took >= timeout+cleanUp || took < timeout*9/10 {
			t.Errorf("given up %v after the last contact, the timeout is %v: %v", took, timeout, err)
		}
		srv.down = false
		if _, err := session.Resume(t.Context(), cfg, srv.dial, ticket); !errors.Is(err, recipes.ErrDeadline) {
			t.Errorf("after the deadline: %v", err)
		}
	})
}

// impostor replaces each connect request by one for a new session.
type impostor struct{ net.Conn }

func (c impostor) Write(b []byte) (int, error) {
	if len(b) >= 44 && binary.BigEndian.Uint32(b) == 44 {
		b = append([]byte(nil), b...)
		clear(b[4+16:])
		binary.BigEndian.PutUint32(b[4+24:], 16)
	}
	return c.Conn.Write(b)
}

func TestAServerThatAnswersWithAnotherSession(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return impostor{c}, err
	}
	if _, err := session.Resume(zktest.Bounded(t), to(srv), dial, s.Ticket()); !errors.Is(err, recipes.ErrNotContinued) {
		t.Errorf("resumed as another session: %v", err)
	}
	if _, err := s.Stat(zktest.Bounded(t), "/"); err != nil {
		t.Errorf("the session itself: %v", err)
	}
}

// If the second process fails, a third one can resume the session.
func TestAFailedResumeLeavesTheSession(t *testing.T) {
	for name, fault := range map[string]zkserver.Fault{
		"the connection ends": {CloseBefore: true},
		"no answer":           {DropReply: true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := embedded(t)
			ticket := letGo(t, open(t, to(srv)))
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op == zkserver.OpCloseSession {
					t.Error("the session was closed")
				}
				if r.Op == zkserver.OpMulti {
					return fault
				}
				return zkserver.Fault{}
			})
			ctx, cancel := context.WithTimeout(zktest.Bounded(t), 300*time.Millisecond)
			defer cancel()
			if _, err := session.Resume(ctx, to(srv), nil, ticket); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			srv.SetFault(nil)
			resume(t, to(srv), carried(t, ticket, time.Now()))
		})
	}
}

// LetGo never closes the session, whatever was in progress.
func TestLettingGoClosesNothing(t *testing.T) {
	srv := embedded(t)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCloseSession {
			t.Error("the session was closed")
		}
		return zkserver.Fault{}
	})
	s := open(t, to(srv))
	for range 20 {
		go s.Children(context.Background(), "/")
		go s.CreateProtected(context.Background(), "/busy", "n-", nil)
		letting := make(chan session.Ticket, 1)
		go func() { ticket, _ := s.LetGo(context.Background()); letting <- ticket }()
		s = resume(t, to(srv), <-letting)
	}
	srv.SetFault(nil)
}

// deaf is a connection on which nothing arrives.
type deaf struct{ net.Conn }

func (c deaf) Read([]byte) (int, error) {
	_, err := io.Copy(io.Discard, c.Conn)
	return 0, cmp.Or(err, io.EOF)
}

// If the deadline passes while no server answers, Resume does not close the session, which
// other processes may have resumed.
func TestAResumeThatMeetsItsDeadlineClosesNothing(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		cfg := recipes.SessionConfig{Servers: []string{"server"}}
		ticket := letGo(t, s)
		near := carried(t, ticket, time.Now().Add(-s.Timeout()*8/10))
		silent := func(context.Context, string, string) (net.Conn, error) { return deaf{pipe(srv)}, nil }
		if _, err := session.Resume(t.Context(), cfg, silent, near); !errors.Is(err, recipes.ErrDeadline) {
			t.Error(err)
		}
		closeNow(must.Get(session.Resume(t.Context(), cfg, dialPipe(srv), carried(t, ticket, time.Now())))(t))
	})
}

// What a session holds survives a resumption although two of three servers accept connections and
// answer nothing: no attempt takes as much of the remaining time as ConnectTimeout.
func TestSilentServersLeaveTimeForAResumption(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		cfg := recipes.SessionConfig{Servers: []string{"silent-1", "silent-2", "server"}, ConnectTimeout: s.Timeout() / 2}
		silent := 0
		dial := func(_ context.Context, _, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "silent") {
				silent++
				return deaf{pipe(srv)}, nil
			}
			return pipe(srv), nil
		}
		for range 20 { // each session has its own order
			ticket := carried(t, letGo(t, s), time.Now().Add(-s.Timeout()/4))
			s = must.Get(session.Resume(t.Context(), cfg, dial, ticket))(t)
		}
		if silent == 0 {
			t.Error("no silent server was met")
		}
		closeNow(s)
	})
}

// A session that another call closes cannot be let go. LetGo waits for the server no longer
// than its context.
func TestLettingGoOfASessionThatIsBeingClosed(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		srv.Freeze(true)
		defer srv.Freeze(false)
		closed := make(chan struct{})
		go func() { defer close(closed); s.Close(context.Background()) }()
		<-s.Done()
		const patience = 100 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		ticket, err := s.LetGo(ctx)
		if took := time.Since(begun); !errors.Is(err, recipes.ErrClosed) || ticket.Bytes() != nil || took > patience {
			t.Errorf("after %v: %v, and a ticket of %d bytes", took, err, len(ticket.Bytes()))
		}
		<-closed
	})
}
