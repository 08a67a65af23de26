package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// firstID is the id before the first one that a ZooKeeper with this number gives, if it starts at
// this time of its clock (SessionTrackerImpl.initializeNextSessionId, the same since 3.4.6).
func firstID(server int64, clock time.Duration) int64 {
	return int64(uint64(clock.Milliseconds())<<24>>8) | server<<56
}

// A ZooKeeper's ids are not small. Its clock begins with its machine. The documentation allows the
// numbers 1 to 255; a server with the number 0 works too.
func TestNoZooKeeperCountsItsSessionsFromOne(t *testing.T) {
	random := bytes.Repeat([]byte{7}, PasswordSize)
	for server := range int64(256) {
		for _, clock := range []time.Duration{0, time.Millisecond, 255 * time.Millisecond, 256 * time.Millisecond, time.Second, time.Hour, 34 * 365 * 24 * time.Hour} {
			if server == 0 && clock < 256*time.Millisecond {
				continue // no machine starts a server as fast as that
			}
			for _, n := range []int64{1, 1000, 1 << 24} { // of the session
				if id := firstID(server, clock) + n; IsKeeper(id, random) {
					t.Errorf("server %d, started at %v of its clock: its session %d, %#x, is taken for Keeper's", server, clock, n, id)
				}
			}
		}
	}
}

// A ZooKeeper's password is the output of java.util.Random.nextBytes: four numbers, each the upper 32
// of 48 bits of the state. A number is 0 in 65,536 states, so all of them are checked.
func TestNoZooKeeperHasAPasswordOfZeros(t *testing.T) {
	next := func(state uint64) uint64 { return (state*0x5DEECE66D + 0xB) & (1<<48 - 1) }
	longest := 0
	for first := range uint64(1 << 16) {
		zeros := 0
		for state := first; state>>16 == 0; state = next(state) {
			if zeros++; zeros == PasswordSize/4 {
				t.Fatalf("after the state %d, a password is all zeros", first)
			}
		}
		longest = max(longest, zeros)
	}
	if longest == 0 {
		t.Error("no state gives a zero: the test checks nothing")
	}
}

func TestKeeperIsRecognized(t *testing.T) {
	zeros, random := make([]byte, PasswordSize), bytes.Repeat([]byte{7}, PasswordSize)
	lowest := append(make([]byte, PasswordSize-1), 1)
	for _, test := range []struct {
		id       int64
		password []byte
		want     bool
	}{
		{1, zeros, true}, {2430223, zeros, true}, {1 << 40, zeros, true}, // more sessions than anybody opens
		{1, random, true}, {1<<24 - 1, random, true},
		{1 << 24, random, false}, {1<<56 | 1, random, false}, {1<<56 | 1, lowest, false},
		{math.MinInt64, random, false}, {-1, random, false},
	} {
		if got := IsKeeper(test.id, test.password); got != test.want {
			t.Errorf("session %#x with the password %x: %t", test.id, test.password, got)
		}
	}
}

// keeperAnswer is Keeper's answer to a connect request, without its length.
func keeperAnswer(id int64) []byte {
	return answering(0, int32(scriptTimeout.Milliseconds()), id, make([]byte, PasswordSize), nil)
}

// keeperConn is an established connection to a Keeper, and the server's end.
func keeperConn(t *testing.T, w *Wire) (*Conn, net.Conn) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close(); server.Close() })
	c := over(t, client, w, time.Now().Add(time.Hour), func(err error) { t.Errorf("failed: %v", err) })
	go func() {
		skipFrame(server)
		answer := keeperAnswer(42)
		server.Write(frame(int32(len(answer)), answer...))
	}()
	if _, err := c.Write(connectRequest(int32(scriptTimeout.Milliseconds()), 0, make([]byte, PasswordSize))); err != nil {
		t.Fatal(err)
	}
	if err := skipFrame(c); err != nil {
		t.Fatal(err)
	}
	return c, server
}

// No request that a version of Keeper may not know reaches it: the server would end the session.
func TestKeeperGetsNoRequestThatItMayNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.Identity = "u:p" // otherwise it would create no bare znodes anyway
		c, server := keeperConn(t, w)
		c.kernel = true // as TCP, for SendNow
		var got bytes.Buffer
		go io.Copy(&got, server)
		for _, r := range []Request{
			Create2("/a", nil, Ephemeral, nil), Ephemerals("/"), WatchChildren("/a", 1), RemoveDataWatch("/a"),
		} {
			if _, err := c.Send(Get("/a", false), r); !errors.Is(err, recipes.ErrUnsupported) {
				t.Errorf("%s: %v", operations[r.op].name, err)
			}
			if b, err := c.SendNow(r); b != nil || err != nil {
				t.Errorf("%s: %v, %v", operations[r.op].name, b, err)
			}
		}
		synctest.Wait()
		if got.Len() > 0 {
			t.Errorf("%d bytes were sent", got.Len())
		}
		if _, err := c.Send(Get("/a", false)); err != nil {
			t.Errorf("a request that it knows: %v", err)
		}
		if w.CreatesBare() {
			t.Error("bare znodes need create2")
		}
		if removes, known := w.RemovesWatches(); removes || !known {
			t.Error("watches cannot be removed")
		}
	})
}

// A parent is created by the request that every version knows. Some ignore the flag of a container.
func TestKeeperCreatesNoContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		c, server := keeperConn(t, w)
		w.dialer.current = c
		go func() { _, _ = io.Copy(io.Discard, c) }() // as go-zookeeper reads
		created := make(chan error, 1)
		go func() { created <- w.CreateParent("/a", nil) }()
		head := make([]byte, lengthSize+8)
		if _, err := io.ReadFull(server, head); err != nil {
			t.Fatal(err)
		}
		if op := int32(binary.BigEndian.Uint32(head[lengthSize+4:])); op != opCreate {
			t.Errorf("sent %s", operations[op].name)
		}
		c.Close()
		if err := <-created; !Lost(err) {
			t.Error(err)
		}
	})
}

// Keeper opens another session instead of continuing one. That ends the session before anything is
// sent, and is no contact: a grant that is being made could count on it.
func TestAnotherSessionIsNoContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := keeperAnswer(42), keeperAnswer(43)
		d := newDialogue(t, frame(int32(len(first)), first...), frame(int32(len(second)), second...))
		defer d.end()
		d.Digest = &recipes.Digest{User: "u", Password: "p"} // is sent in the first session only
		d.run(t)
		contact, known := d.Lease.LastContact(), d.Lease.KnownContact()
		time.Sleep(time.Millisecond)
		d.Drop()
		time.Sleep(scriptTimeout / 10)
		synctest.Wait()
		if !errors.Is(d.lost, recipes.ErrNotContinued) || errors.Is(d.lost, recipes.ErrExpired) {
			t.Errorf("lost with %v", d.lost)
		}
		if d.ID() != 42 || len(d.accepted) != 1 {
			t.Errorf("the session is %d; accepted %v", d.ID(), d.accepted)
		}
		if got, proved := d.Lease.LastContact(), d.Lease.KnownContact(); got != contact || proved != known {
			t.Errorf("contacts of another session count: %v and %v, were %v and %v", got, proved, contact, known)
		}
		if got := d.received(1); len(got) != 1 || got[0] != opClose {
			t.Errorf("the other session got the requests %v; want only its close", got)
		}
	})
}

// Keeper is refused at the handshake if the configuration says so, and with SASL, which it does not
// know. The session that it has opened is closed.
func TestKeeperIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Wire)
		want   error
	}{
		{"by ZooKeeperOnly", func(w *Wire) { w.ZooKeeperOnly = true }, recipes.ErrUnsupported},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := keeperAnswer(42)
				d := newDialogue(t, frame(int32(len(answer)), answer...))
				defer d.end()
				test.change(d.Wire)
				d.run(t)
				if !errors.Is(d.lost, test.want) || len(d.accepted) > 0 || d.dials != 1 {
					t.Errorf("lost with %v, accepted %v in %d attempts", d.lost, d.accepted, d.dials)
				}
				if got := d.received(0); len(got) != 1 || got[0] != opClose {
					t.Errorf("it got the requests %v; want only a close", got)
				}
			})
		})
	}
}

// Some errors in the header of Keeper's replies leave the outcome unknown. They end the connection, so
// the request has the outcome of a lost connection. ZooKeeper's -112 remains an answer.
func TestKeepersUndecidedAnswersEndTheConnection(t *testing.T) {
	for _, keeper := range []bool{true, false} {
		for code, undecided := range map[Code]bool{-4: true, -7: true, -112: true, -101: false, -110: false, -8: false} {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t)
				c, server := keeperConn(t, w)
				w.keeper.Store(keeper)
				read := make(chan error, 1)
				go func() { _, err := io.Copy(io.Discard, c); c.Close(); read <- err }()
				go func() {
					head := make([]byte, lengthSize+8)
					if _, err := io.ReadFull(server, head); err != nil {
						return
					}
					go io.Copy(io.Discard, server)
					var e jute.Encoder
					e.Int32(replyHeaderSize)
					e.Int32(int32(binary.BigEndian.Uint32(head[lengthSize:])))
					e.Int64(9)
					e.Int32(int32(code))
					server.Write(e.Bytes)
				}()
				replies, err := c.Exchange(context.Background(), Delete("/a", 1))
				if lost := undecided && keeper; lost != Lost(err) || !lost && (err != nil || replies[0].code != code) {
					t.Errorf("Keeper %t, code %d: %v, %v", keeper, code, replies, err)
				}
				c.Close()
				<-read
			})
		}
	}
}

// Keeper confirms a close only by the end of the connection. Before a close was sent, and on ZooKeeper,
// the end confirms nothing.
func TestKeeperConfirmsACloseByTheEnd(t *testing.T) {
	for _, test := range []struct{ keeper, sent, cut, want bool }{
		{true, true, false, true}, {true, false, false, false}, {false, true, false, false}, {true, true, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			c, server := keeperConn(t, w)
			w.keeper.Store(test.keeper)
			go func() {
				if test.sent {
					c.SendClose()
				}
				if test.cut {
					server.Write([]byte{0, 0}) // a part of a frame
				}
				server.Close()
			}()
			go io.CopyN(io.Discard, server, int64(len(closeRequest())))
			if test.sent {
				synctest.Wait()
			}
			if err := c.nextFrame(); err == nil {
				t.Error("the connection has not ended")
			}
			if got := Happened(w.Closed()); got != test.want {
				t.Errorf("%+v: confirmed %t", test, got)
			}
		})
	}
}
