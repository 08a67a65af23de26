package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// What is refused as too large says how many bytes fit, and so many do.
func TestWhatFitsIntoAPacketIsSent(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	s := open(t, cfg)
	for what, write := range map[string]func(data []byte) error{
		"create": func(data []byte) error { return s.Create(ctx, "/created", data) },
		"set":    func(data []byte) error { _, err := s.SetOnce(ctx, "/", data, -1); return err },
		"named": func(data []byte) error {
			_, err := s.CreateNamed(ctx, "/named", data)
			return err
		},
	} {
		err := write(make([]byte, cfg.MaxPacket))
		var most int
		if !errors.Is(err, recipes.ErrTooLarge) {
			t.Fatalf("%s: %v", what, err)
		}
		_, rest, _ := strings.Cut(err.Error(), "at most ")
		if _, err := fmt.Sscan(rest, &most); err != nil || most <= 0 {
			t.Fatalf("%s: it names %d bytes: %v", what, most, err)
		}
		if err := write(make([]byte, most+1)); !errors.Is(err, recipes.ErrTooLarge) {
			t.Errorf("%s of %d bytes, one more than fit: %v", what, most+1, err)
		}
		if err := write(make([]byte, most)); err != nil {
			t.Errorf("%s of %d bytes, which fit: %v", what, most, err)
		}
	}
	// The packet's headers, the path, the ACL, the operation's headers.
	const beside = 512 + len("/x") + len("worldanyone") + 12 + 64
	for n, want := range map[int]error{cfg.MaxPacket - beside: nil, cfg.MaxPacket - beside + 1: recipes.ErrTooLarge} {
		var txn session.Txn
		txn.Set("/x", make([]byte, n), -1)
		if err := s.TxnFits(txn); !errors.Is(err, want) {
			t.Errorf("a transaction with %d bytes: %v", n, err)
		}
	}
}

// The server sees a path with its chroot, so that takes room too.
func TestAChrootTakesRoomInAPacket(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	most := func(chroot string) (n int) {
		cfg := to(srv)
		cfg.MaxPacket, cfg.Chroot = 4<<10, chroot
		err := open(t, cfg).Create(ctx, "/large", make([]byte, cfg.MaxPacket))
		_, rest, _ := strings.Cut(fmt.Sprint(err), "at most ")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	chroot := "/" + strings.Repeat("c", 1000)
	if with, without := most(chroot), most(""); with != without-len(chroot) {
		t.Errorf("%d bytes fit below a chroot of %d, and %d without it", with, len(chroot), without)
	}
}

// A reply that is as large as a packet may be is read, and a larger one is an error that
// ends no connection.
func TestAReplyAsLargeAsAPacket(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	s, other := open(t, cfg), open(t, to(srv))
	const beside = 16 + 4 + 68 // the header, the length of the data, the record
	if err := other.Create(ctx, "/large", nil); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]error{cfg.MaxPacket - beside: nil, cfg.MaxPacket - beside + 1: recipes.ErrTooLarge} {
		if _, err := other.SetOnce(ctx, "/large", make([]byte, n), -1); err != nil {
			t.Fatal(err)
		}
		node, err := s.Get(ctx, "/large")
		if !errors.Is(err, want) || err == nil && len(node.Data) != n {
			t.Errorf("of %d bytes it reads %d: %v", n, len(node.Data), err)
		}
	}
	if n := s.Counters().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
}
