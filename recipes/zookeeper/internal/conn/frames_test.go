package conn

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// frame returns a length field, and the bytes that arrive after it.
func frame(says int32, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(says)), body...)
}

// eventHeader is the header of a watch event.
func eventHeader() []byte {
	return append(bytes.Repeat([]byte{0xff}, 4), make([]byte, replyHeaderSize-4)...) // the xid is -1
}

// Bytes that cannot be a frame end the connection at once. Only before the server has accepted
// the session is the error also reported as the reason why the attempt to connect failed.
func TestFramesThatEndTheConnection(t *testing.T) {
	header := make([]byte, replyHeaderSize)
	for _, test := range []struct {
		name        string
		established bool
		sent        []byte
		hangUp      bool
		want        string
	}{
		{"negative, first", false, frame(-1), false, "frame of -1 bytes"},
		{"shorter than its header, first", false, frame(replyHeaderSize - 1), false, "frame of 15 bytes"},
		{"longer than a handshake, first", false, frame(maxHandshake+1, header...), false, "not a ZooKeeper server"},
		{"cut off in its length, first", false, []byte{0, 0}, true, io.ErrUnexpectedEOF.Error()},
		{"cut off in its header, first", false, frame(36, 0, 0), true, io.ErrUnexpectedEOF.Error()},
		{"nothing, first", false, nil, true, "the server closed the connection"},
		{"negative", true, frame(-1), false, "frame of -1 bytes"},
		{"empty", true, frame(0), false, "frame of 0 bytes"},
		{"shorter than its header", true, frame(replyHeaderSize - 1), false, "frame of 15 bytes"},
		{"an event too long", true, frame(replyHeaderSize+maxReply+1, eventHeader()...), false, "watch event of 67108865 bytes"},
		{"an event too short", true, frame(replyHeaderSize+2, append(eventHeader(), 1, 2)...), false, "watch event: "},
		{"an event that is cut off", true, frame(replyHeaderSize+8, append(eventHeader(), 1, 2)...), true, io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				var reported []error
				c := over(t, client, newWire(t), time.Now().Add(time.Hour), func(err error) { reported = append(reported, err) })
				c.established.Store(test.established)
				go func() {
					server.Write(test.sent)
					if test.hangUp {
						server.Close()
					}
				}()
				n, err := c.Read(make([]byte, 100))
				server.Close()
				if n != 0 || err == nil {
					t.Fatalf("%d bytes were read, %v", n, err)
				}
				if test.established {
					reported = append(reported, err)
				}
				if len(reported) != 1 || !strings.Contains(reported[0].Error(), test.want) {
					t.Errorf("reported %q; want one with %q", reported, test.want)
				}
			})
		})
	}
}

// A reply to a request that was not sent is not delivered to another request, and does not count as
// a contact. It ends the connection: the server and the session do not agree on what was sent.
func TestAReplyToARequestThatWasNotSent(t *testing.T) {
	for name, xid := range map[string]func(sent int32) int32{
		"in the session's numbers":         func(sent int32) int32 { return sent + 1 },
		"in go-zookeeper's":                func(int32) int32 { return 1000 },
		"a ping":                           func(int32) int32 { return xidPing },
		"a number with a special meaning":  func(int32) int32 { return -4 },
		"the reply comes a second time":    nil,
		"the close that was not requested": func(int32) int32 { return closeXid },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, newWire(t))
				s.handshakeIn(0)
				time.Sleep(time.Second)
				b := must.Get(s.sends())(t)
				next := func(xid int32, rest ...byte) error {
					body := append(binary.BigEndian.AppendUint32(nil, uint32(xid)), make([]byte, replyHeaderSize-4)...)
					go s.server.Write(frame(int32(len(body)+len(rest)), append(body, rest...)...))
					return s.nextFrame()
				}
				wrong := s.pending[0].xid
				if xid == nil {
					if err := next(wrong, 1, 2, 3); err != nil || !b.Settled() || !slices.Equal(b.replies[0].body, []byte{1, 2, 3}) {
						t.Fatalf("its own reply: %v, %v", err, b.replies)
					}
				} else {
					wrong = xid(wrong)
				}
				contact := s.wire.Lease.LastContact()
				time.Sleep(time.Second)
				if err := next(wrong, 4, 5, 6); err == nil || !strings.Contains(err.Error(), "was not sent") {
					t.Errorf("the connection goes on: %v", err)
				}
				if b.Settled() != (xid == nil) || !s.wire.Lease.LastContact().Equal(contact) || Happened(s.wire.Closed()) {
					t.Errorf("the request is answered: %v; contact %v, before %v", b.Settled(), s.wire.Lease.LastContact(), contact)
				}
			})
		})
	}
}

// Only an answer without an error confirms that the session is closed.
func TestARefusedCloseIsNoConfirmation(t *testing.T) {
	for _, code := range []int32{0, -127} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, newWire(t))
			s.handshakeIn(0)
			s.SendClose()
			body := binary.BigEndian.AppendUint32(nil, closeXid)
			body = binary.BigEndian.AppendUint64(body, 7)
			body = binary.BigEndian.AppendUint32(body, uint32(code))
			go s.server.Write(frame(int32(len(body)), body...))
			if err := s.nextFrame(); (err == nil) != (code == 0) || Happened(s.wire.Closed()) != (code == 0) {
				t.Errorf("code %d: %v; closed: %v", code, err, Happened(s.wire.Closed()))
			}
		})
	}
}

// go-zookeeper gets an error instead of a reply that does not fit its buffer. The next frame is
// read correctly.
func TestAReplyTooLongForTheLibrary(t *testing.T) {
	for _, test := range []struct {
		length int
		long   bool
	}{{maxLibraryReply, false}, {maxLibraryReply + 1, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, newWire(t))
			s.handshakeIn(0)
			s.request(xidPing, opPing)
			body := append(bytes.Repeat([]byte{0xff}, 3), 0xfe) // the xid of a ping
			body = append(body, make([]byte, test.length-4)...)
			go s.server.Write(frame(int32(test.length), body...))
			got := make([]byte, lengthSize+replyHeaderSize)
			must.Get(io.ReadFull(s.Conn, got))(t)
			length, code := int32(binary.BigEndian.Uint32(got)), int32(binary.BigEndian.Uint32(got[lengthSize+12:]))
			switch {
			case test.long && (length != replyHeaderSize || code != int32(oversized) || s.rest != 0):
				t.Errorf("of %d bytes it is given %d, with code %d, and %d more", test.length, length, code, s.rest)
			case !test.long && (int(length) != test.length || code != 0 || s.rest != test.length-replyHeaderSize):
				t.Errorf("of %d bytes it is given %d, with code %d, and %d more", test.length, length, code, s.rest)
			}
			must.Get(io.CopyN(io.Discard, s.Conn, int64(s.rest)))(t)
			s.request(xidPing, opPing)
			s.reply(xidPing, 0)
		})
	}
}

// A server without getEphemerals may still have create2.
func TestAnUnsupportedRequestSaysNothingAboutCreate2(t *testing.T) {
	for op, bare := range map[int32]bool{opCreate2: false, opGetEphemerals: true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			w.Identity = "user:password"
			s := newScript(t, w)
			s.handshakeIn(0)
			must.Get(s.Send(Request{op: op}))(t)
			body := binary.BigEndian.AppendUint32(nil, uint32(s.pending[0].xid))
			body = binary.BigEndian.AppendUint64(body, 0)
			code := Unimplemented // a variable: the constant does not fit uint32
			body = binary.BigEndian.AppendUint32(body, uint32(code))
			go s.server.Write(frame(int32(len(body)), body...))
			must.Do(t, s.nextFrame())
			if w.CreatesBare() != bare {
				t.Errorf("without operation %d, bare znodes can be created: %v", op, !bare)
			}
		})
	}
}
