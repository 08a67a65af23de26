package zkserver

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// The decoder must neither panic nor return more than the body contains.
func FuzzDecodeOperation(f *testing.F) {
	e := jute.Encoder{}
	e.String("/x")
	e.Buffer([]byte("data"))
	e.ACLs(openACL...)
	e.Int32(3)
	f.Add(int32(OpCreate), e.Bytes)
	m := jute.Encoder{}
	m.MultiHeader(int32(OpCreate), int32(codeOK))
	m.Bytes = append(m.Bytes, e.Bytes...)
	m.MultiEnd()
	f.Add(int32(OpMulti), m.Bytes)
	f.Add(int32(OpSetWatches), []byte{0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff})
	f.Add(int32(OpSetACL), []byte{0, 0, 0, 1, '/', 0x7f, 0xff, 0xff, 0xff})
	f.Add(int32(OpGetData), []byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		for like, p := range profiles {
			o, err := decodeOperation(Op(op), body, p)
			if err != nil {
				continue
			}
			if len(o.path)+len(o.data) > len(body) || len(o.acl)+len(o.parts) > len(body) {
				t.Errorf("%d bytes became %+v (like %s)", len(body), o, like)
			}
		}
	})
}

func FuzzDecodeConnect(f *testing.F) {
	e := jute.Encoder{}
	e.Int32(0)
	e.Int64(0)
	e.Int32(4000)
	e.Int64(0)
	e.Buffer(make([]byte, 16))
	f.Add(e.Bytes)
	f.Add(append(e.Bytes, 1))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := decodeConnect(body); err == nil && len(r.password) > len(body) {
			t.Errorf("%d bytes became %+v", len(body), r)
		}
	})
}

// FuzzConnection sends arbitrary bytes over a connection.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("ruok"))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	f.Add(append([]byte{0, 0, 0, 28}, make([]byte, 28)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := New(Config{})
		near, far := net.Pipe()
		go s.ServeConn(far)
		go func() { _, _ = io.Copy(io.Discard, near) }()
		_ = near.SetDeadline(time.Now().Add(time.Second)) // clean-up: the server may not read all of it
		_, _ = near.Write(in)
		_ = near.Close()
		must.Report(t, s.Close())
	})
}
