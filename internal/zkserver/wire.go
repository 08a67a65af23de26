package zkserver

import (
	"encoding/binary"
	"errors"
)

// errShort reports a record that ends before its last field, or whose length
// fields do not fit into it.
var errShort = errors.New("zkserver: record is shorter than its fields")

// decoder reads jute, ZooKeeper's encoding, from one packet. Lengths come from
// a stranger: nothing is allocated by a length before it was compared with the
// bytes that are really there. After the first error every read gives zero
// values, so callers check err once, at the end.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
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
	if b := d.take(1); b != nil {
		return b[0] != 0
	}
	return false
}

// buffer returns nil for the null buffer (length -1), which ZooKeeper keeps
// apart from the empty one. The result aliases the packet.
func (d *decoder) buffer() []byte {
	n := d.i32()
	if n == -1 || d.err != nil {
		return nil
	}
	return d.take(int(n))
}

// str returns "" for the null string.
func (d *decoder) str() string { return string(d.buffer()) }

// vector calls each as often as the vector has elements, and stops at the
// first error. It reports false for the null vector.
func (d *decoder) vector(each func()) bool {
	n := d.i32()
	if n == -1 {
		return false
	}
	if n < 0 {
		d.fail()
	}
	for ; n > 0 && d.err == nil; n-- {
		each()
	}
	return true
}

func (d *decoder) strings() []string {
	var list []string
	d.vector(func() { list = append(list, d.str()) })
	return list
}

func (d *decoder) acls() []ACL {
	var list []ACL
	d.vector(func() {
		list = append(list, ACL{Perms: d.i32(), Scheme: d.str(), ID: d.str()})
	})
	return list
}

// encoder appends jute to a slice.
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

func (e *encoder) buffer(v []byte) {
	if v == nil {
		e.i32(-1)
		return
	}
	e.i32(int32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) str(v string) {
	e.i32(int32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) strings(list []string) {
	e.i32(int32(len(list)))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) acls(list []ACL) {
	e.i32(int32(len(list)))
	for _, a := range list {
		e.i32(a.Perms)
		e.str(a.Scheme)
		e.str(a.ID)
	}
}

func (e *encoder) stat(s Stat) {
	e.i64(s.Czxid)
	e.i64(s.Mzxid)
	e.i64(s.Ctime)
	e.i64(s.Mtime)
	e.i32(s.Version)
	e.i32(s.Cversion)
	e.i32(s.Aversion)
	e.i64(s.EphemeralOwner)
	e.i32(s.DataLength)
	e.i32(s.NumChildren)
	e.i64(s.Pzxid)
}

// A reply frame is: length, xid, zxid, err, body.
const frameHeader = 4 + 4 + 8 + 4

// newFrame starts a reply whose body is to be appended; seal completes it.
func newFrame() *encoder {
	return &encoder{b: make([]byte, frameHeader, frameHeader+96)}
}

// seal writes the header. A reply that reports an error has no body.
func (e *encoder) seal(xid int32, zxid int64, c code) []byte {
	if c != codeOK {
		e.b = e.b[:frameHeader]
	}
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4))
	binary.BigEndian.PutUint32(e.b[4:], uint32(xid))
	binary.BigEndian.PutUint64(e.b[8:], uint64(zxid))
	binary.BigEndian.PutUint32(e.b[16:], uint32(c))
	return e.b
}
