package session_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// refuser relays bytes between clients and a server. It can replace the server's replies to one
// operation by a refusal, for example of credentials: no server refuses those of the digest
// scheme.
// the digest scheme.
type refuser struct {
	addr   string
	op     int32
	code   int32
	body   []byte // if not nil, it replaces the reply's body
	refuse atomic.Bool
}

const (
	opAuth         = 100
	opSetWatches   = 101
	errAuthFailed  = -115
	errThrottledOp = -127 // from a server whose operator limits how long requests may wait
)

func newRefuser(t *testing.T, server string, op, code int32) *refuser {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &refuser{addr: l.Addr().String(), op: op, code: code}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(client, server) })
		}
	})
	return r
}

func (r *refuser) pass(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		client.Close()
		return
	}
	var last atomic.Int32 // xid of the last such request
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			frame, err := readFrame(client)
			if err != nil {
				break
			}
			if n > 0 && len(frame) >= 12 && int32(binary.BigEndian.Uint32(frame[8:])) == r.op {
				last.Store(int32(binary.BigEndian.Uint32(frame[4:])))
			}
			server.Write(frame)
		}
		server.Close()
	}()
	for n := 0; ; n++ {
		frame, err := readFrame(server)
		if err != nil {
			break
		}
		if n > 0 && r.refuse.Load() && int32(binary.BigEndian.Uint32(frame[4:])) == last.Load() {
			if r.body == nil {
				binary.BigEndian.PutUint32(frame[16:], uint32(r.code))
			} else {
				frame = append(frame[:20], r.body...)
				binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			}
		}
		client.Write(frame)
	}
	client.Close()
	<-done
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := append(length[:], make([]byte, binary.BigEndian.Uint32(length[:]))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
