package session

import (
	"encoding/binary"
	"errors"

	"github.com/go-zookeeper/zk"
)

// encoder writes ZooKeeper's serialization of the few requests that the session
// sends itself.
type encoder struct{ b []byte }

func (e *encoder) i32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) i64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) str(s string) {
	e.i32(int32(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) strs(list ...string) {
	e.i32(int32(len(list)))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) acl(list []zk.ACL) {
	e.i32(int32(len(list)))
	for _, a := range list {
		e.i32(a.Perms)
		e.str(a.Scheme)
		e.str(a.ID)
	}
}

// opHeader starts an operation in a multi.
func (e *encoder) opHeader(op int32, done bool, code int32) {
	e.i32(op)
	e.bool(done)
	e.i32(code)
}

var errMalformed = errors.New("the server's reply is too short or malformed")

// decoder reads ZooKeeper's serialization. After the first error it yields
// zeroes; what it yields refers to its input.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.err = errMalformed
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) i32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) i64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// bytes reads a buffer; ZooKeeper gives the length -1 to one that is null.
func (d *decoder) bytes() []byte {
	n := d.i32()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) str() string { return string(d.bytes()) }

func (d *decoder) strs() []string {
	n := int(d.i32())
	if n < 0 || n > len(d.b)/4 { // each has a length of four bytes
		d.err = errMalformed
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.str())
	}
	return list
}

func (d *decoder) stat() Stat {
	return Stat{
		Czxid: d.i64(), Mzxid: d.i64(), Ctime: d.i64(), Mtime: d.i64(),
		Version: d.i32(), Cversion: d.i32(), Aversion: d.i32(),
		EphemeralOwner: d.i64(), DataLength: d.i32(), NumChildren: d.i32(), Pzxid: d.i64(),
	}
}
