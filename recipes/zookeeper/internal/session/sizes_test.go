package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// An ErrTooLarge says how many bytes fit, and that many are accepted.
func TestWhatFitsIntoAPacketIsSent(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	s := open(t, cfg)
	const beside = 512 + len("worldanyone") + 12 // the packet's headers and the ACL, without the path
	for what, tt := range map[string]struct {
		path  string
		write func(path string, data []byte) error
	}{
		"create": {"/created", func(path string, data []byte) error { return s.Create(ctx, path, data) }},
		"set":    {"/", func(path string, data []byte) error { _, err := s.SetOnce(ctx, path, data, -1); return err }},
		"named":  {"/named", func(path string, data []byte) error { _, err := s.CreateNamed(ctx, path, data); return err }},
		"protected": {"/line", func(path string, data []byte) error {
			_, err := s.CreateProtected(ctx, path, "lock-", data)
			return err
		}},
		"place": {"/line", func(path string, data []byte) error {
			_, _, err := s.CreateBare(ctx, path, "lock-", data, false, s.EnsureQueuePath)
			return err
		}},
	} {
		write := func(data []byte) error { return tt.write(tt.path, data) }
		err := write(make([]byte, cfg.MaxPacket))
		var most int
		if !errors.Is(err, recipes.ErrTooLarge) {
			t.Fatalf("%s: %v", what, err)
		}
		_, rest, _ := strings.Cut(err.Error(), "at most ")
		if _, err := fmt.Sscan(rest, &most); err != nil || most != cfg.MaxPacket-beside-len(tt.path) {
			t.Fatalf("%s: it names %d bytes: %v", what, most, err)
		}
		if err := write(make([]byte, most+1)); !errors.Is(err, recipes.ErrTooLarge) {
			t.Errorf("%s of %d bytes, one more than fit: %v", what, most+1, err)
		}
		if err := write(make([]byte, most)); err != nil {
			t.Errorf("%s of %d bytes, which fit: %v", what, most, err)
		}
	}
	const ofTxn = beside + len("/x") + 64 // the operation's headers
	for n, want := range map[int]error{cfg.MaxPacket - ofTxn: nil, cfg.MaxPacket - ofTxn + 1: recipes.ErrTooLarge} {
		var txn session.Txn
		txn.Set("/x", make([]byte, n), -1)
		if err := s.TxnFits(txn); !errors.Is(err, want) {
			t.Errorf("a transaction with %d bytes: %v", n, err)
		}
	}
}

// The server sees the path with its chroot, which takes room too.
func TestAChrootTakesRoomInAPacket(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	most := func(chroot string) (n int) {
		cfg := to(srv)
		cfg.MaxPacket, cfg.Chroot = 4<<10, chroot
		err := open(t, cfg).Create(ctx, "/large", make([]byte, cfg.MaxPacket))
		_, rest, _ := strings.Cut(fmt.Sprint(err), "at most ")
		must.Get(fmt.Sscan(rest, &n))(t)
		return n
	}
	chroot := "/" + strings.Repeat("c", 1000)
	if with, without := most(chroot), most(""); with != without-len(chroot) {
		t.Errorf("%d bytes fit below a chroot of %d, and %d without it", with, len(chroot), without)
	}
}

// A reply as large as a packet is read. A larger one is an error and does not end the
// connection.
func TestAReplyAsLargeAsAPacket(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	s, other := open(t, cfg), open(t, to(srv))
	const beside = 16 + 4 + 68 // the header, the length of the data, the record
	must.Do(t, other.Create(ctx, "/large", nil))
	for n, want := range map[int]error{cfg.MaxPacket - beside: nil, cfg.MaxPacket - beside + 1: recipes.ErrTooLarge} {
		must.Get(other.SetOnce(ctx, "/large", make([]byte, n), -1))(t)
		node, err := s.Get(ctx, "/large")
		if !errors.Is(err, want) || err == nil && len(node.Data) != n {
			t.Errorf("of %d bytes it reads %d: %v", n, len(node.Data), err)
		}
		if err != nil && !strings.Contains(err.Error(), "4097 bytes, and SessionConfig.MaxPacket (max_packet) is 4096: raise it") {
			t.Errorf("the error does not say what to raise: %v", err)
		}
	}
	if n := s.Counters().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
}

// MaxPacket does not bound a listing: servers send as many names as there are. Beyond MaxListing, the
// error says what to raise, and the connection remains.
func TestAListingHasABoundOfItsOwn(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg, short := to(srv), to(srv)
	cfg.MaxPacket, short.MaxListing = 4<<10, 4<<10
	s, bounded := open(t, cfg), open(t, short)
	const n = 1000
	for i := range n {
		must.Do(t, s.Create(ctx, fmt.Sprintf("/many/%04d", i), nil))
	}
	list := map[string]func(s *session.Session) ([]string, error){
		"Children": func(s *session.Session) ([]string, error) { return s.Children(ctx, "/many") },
		"ChildrenW": func(s *session.Session) ([]string, error) {
			names, _, err := s.ChildrenW(ctx, "/many")
			return names, err
		},
		"List": func(s *session.Session) ([]string, error) { names, _, err := s.List(ctx, "/many"); return names, err },
	}
	for what, list := range list {
		if names, err := list(s); err != nil || len(names) != n {
			t.Errorf("%s finds %d names: %v", what, len(names), err)
		}
		_, err := list(bounded)
		want := fmt.Sprintf("the reply has %d bytes, and SessionConfig.MaxListing (max_listing) is 4096: raise it", 16+4+n*(4+4)+68)
		if !errors.Is(err, recipes.ErrTooLarge) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of more than MaxListing: %v; want an error with %q", what, err, want)
		}
	}
	if n := bounded.Counters().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
}

// Other clients may store more in a znode than this session's packets hold, and a session may have
// more ephemeral znodes than one of its packets lists. The session still reads what it needs of
// them.
func TestRepliesThatAreReadWhateverTheirSize(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	first, other := open(t, cfg), open(t, to(srv))
	ahead := must.Get(other.CreateProtected(ctx, "/line", "lock-", make([]byte, 8<<10)))(t)
	place := bare(t, first, "/line")
	if node, _, _, err := first.Predecessor(ctx, place, ahead); err != nil || len(node.Data) != 8<<10 {
		t.Errorf("of a predecessor it reads %d bytes: %v", len(node.Data), err)
	}
	if node, err := first.GetOwn(ctx, ahead); err != nil || len(node.Data) != 8<<10 {
		t.Errorf("after a lost reply it reads %d bytes: %v", len(node.Data), err)
	}
	larger := must.Get(session.Open(ctx, to(srv), nil))(t)
	for range 100 { // with names of about 60 bytes
		must.Get(larger.CreateProtected(ctx, "/rest", "lock-", nil))(t)
	}
	second := resume(t, cfg, letGo(t, larger))
	must.Report(t, second.DropRest(ctx, func(string) bool { return false }))
	if left := must.Get(other.Children(ctx, "/rest"))(t); len(left) > 0 {
		t.Errorf("%d znodes of the resumed session are left", len(left))
	}
}

// slow is a connection on which each byte takes some time to arrive.
type slow struct {
	net.Conn
	each time.Duration
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p[:min(len(p), 512)])
	time.Sleep(time.Duration(n) * s.each) // virtual
	return n, err
}

// A large reply over a slow link is awaited as long as bytes arrive.
func TestAReplyThatTakesLongToArrive(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		const timeout, nodes = 10 * time.Second, 400 // each takes about 58 bytes in a listing
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		dial := func(context.Context, string, string) (net.Conn, error) {
			return &slow{pipe(srv), timeout * 8 / 10 / (nodes * 58)}, nil
		}
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, SessionTimeout: timeout, MaxPacket: 64 << 10}, dial))(t)
		defer closeNow(s)
		for range nodes {
			must.Get(s.CreateProtected(t.Context(), "/many", "lock-", nil))(t)
		}
		for name, list := range map[string]func() ([]string, error){
			"through go-zookeeper": func() ([]string, error) { return s.Children(t.Context(), "/many") },
			"past go-zookeeper":    func() ([]string, error) { names, _, err := s.List(t.Context(), "/many"); return names, err },
		} {
			began := time.Now()
			if names, err := list(); err != nil || len(names) != nodes {
				t.Errorf("%s: %d names, %v", name, len(names), err)
			}
			if took := time.Since(began); took < timeout*2/3 {
				t.Errorf("%s: took %v: the case was not met", name, took)
			}
		}
		if n := s.Counters().Reconnects; n != 0 {
			t.Errorf("%d reconnects", n)
		}
	})
}
