package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// token returns a frame with a server's token. length is that of the token in the frame.
func token(code int32, length int32, content string) []byte {
	body := binary.BigEndian.AppendUint32(make([]byte, 12), uint32(code))
	body = append(binary.BigEndian.AppendUint32(body, uint32(length)), content...)
	return frame(int32(len(body)), body...)
}

// A server that does not complete the exchange correctly is not trusted: go-zookeeper gets no
// byte of the handshake, and the connection does not count as a contact. Only an answer ends
// the session.
func TestServersThatDoNotCompleteSASL(t *testing.T) {
	const challenge = `realm="r",nonce="n",qop="auth",algorithm=md5-sess,charset=utf-8`
	good := token(0, int32(len(challenge)), challenge)
	const authFailed = -115
	for _, test := range []struct {
		name    string
		answers [][]byte
		want    error
	}{
		{"success without a proof", [][]byte{good, token(0, -1, "")}, recipes.ErrAuthFailed},
		{"success with an empty proof", [][]byte{good, token(0, 0, "")}, recipes.ErrAuthFailed},
		{"another proof", [][]byte{good, token(0, 8, "rspauth=")}, recipes.ErrAuthFailed},
		{"the challenge again", [][]byte{good, good}, recipes.ErrAuthFailed},
		{"refused", [][]byte{good, token(authFailed, 0, "")}, recipes.ErrAuthFailed},
		{"refused by a header alone", [][]byte{frame(replyHeaderSize, append(make([]byte, 12), 0xff, 0xff, 0xff, 0x8d)...)}, recipes.ErrAuthFailed},
		{"no SASL", [][]byte{token(0, -1, "")}, recipes.ErrAuthFailed},
		{"unimplemented", [][]byte{token(int32(Unimplemented), 0, "")}, recipes.ErrAuthFailed},
		{"huge", [][]byte{frame(1<<31-1, make([]byte, replyHeaderSize)...)}, jute.ErrMalformed},
		{"negative", [][]byte{frame(-1, make([]byte, replyHeaderSize)...)}, jute.ErrMalformed},
		{"only a header", [][]byte{frame(replyHeaderSize, make([]byte, replyHeaderSize)...)}, jute.ErrMalformed},
		{"token longer than its frame", [][]byte{token(0, 100, challenge)}, jute.ErrMalformed},
		{"another xid", [][]byte{append(frame(int32(len(good)-4), 1), good[5:]...)}, jute.ErrMalformed},
		{"cut off", [][]byte{good[:30]}, io.ErrUnexpectedEOF},
		{"hung up", nil, io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				defer client.Close()
				w := newWire(t)
				var lost error
				w.Lost = func(err error) { lost = err }
				w.SASL = &recipes.SASL{Mechanism: "DIGEST-MD5", User: "u", Password: "s3cret"}
				w.dialer = must.Get(newDialer(w))(t)
				c := over(t, client, w, time.Now().Add(time.Hour), func(error) {})
				c.exchange = must.Get(w.dialer.sasl.Begin(context.Background(), "h:1"))(t)
				before := w.Lease.LastContact()
				time.Sleep(time.Second) // in virtual time, so that a later contact has another time
				go func() {
					defer server.Close()
					if skipFrame(server) != nil {
						return
					}
					reply := make([]byte, lengthSize+36) // of a handshake: protocol version, timeout, session id, password
					for at, value := range map[int]uint32{0: 36, 8: 10_000, 12: 1 << 24, 16: 7, 20: PasswordSize, 24: 7} {
						binary.BigEndian.PutUint32(reply[at:], value)
					}
					server.Write(reply)
					for _, answer := range test.answers {
						if skipFrame(server) != nil {
							return
						}
						server.Write(answer)
					}
					if len(test.answers) == 0 {
						_ = skipFrame(server)
					}
				}()
				must.Get(c.Write(connectRequest(10_000, 0, make([]byte, PasswordSize))))(t)
				n, err := c.Read(make([]byte, 100))
				if n != 0 || !errors.Is(err, test.want) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%d bytes, %v; want %v", n, err, test.want)
				}
				if errors.Is(lost, recipes.ErrAuthFailed) != (test.want == recipes.ErrAuthFailed) {
					t.Errorf("lost with %v", lost)
				}
				if c.established.Load() || !w.Lease.LastContact().Equal(before) {
					t.Errorf("established: %t, contact %v later", c.established.Load(), w.Lease.LastContact().Sub(before))
				}
			})
		})
	}
}
