// Package jute reads and writes jute, ZooKeeper's encoding of records on the wire.
// The session uses it for the requests that it sends without go-zookeeper. The in-process
// server uses it for everything.
//
// The conformance client in the tests of internal/zkserver has its own codec. If both sides
// used this one, both would make the same mistake, and no test would notice it.
package jute

import (
	"encoding/binary"
	"errors"
)

// ACL is an entry of a znode's access control list.
type ACL struct {
	Perms  int32 // sum of 1 read, 2 write, 4 create, 8 delete, 16 admin
	Scheme string
	ID     string
}

// Stat is ZooKeeper's record of a znode. Its fields are in the order of the wire.
type Stat struct {
	Czxid, Mzxid   int64 // the transactions that created it and last set its data
	Ctime, Mtime   int64 // milliseconds since 1970
	Version        int32 // data changes
	Cversion       int32 // child changes: creations and deletions
	Aversion       int32 // ACL changes
	EphemeralOwner int64 // the session; 0 without one, for containers and TTL nodes too
	DataLength     int32
	NumChildren    int32
	Pzxid          int64 // the transaction that last created or deleted a child
}

// ErrMalformed is the error of a record that ends before its last field, or that contains
// a length beyond its end.
var ErrMalformed = errors.New("jute: record is shorter than its fields, or malformed")

// Decoder reads records from the front of Bytes, and removes the bytes that it has read. A
// peer can send any length: Decoder compares it with the remaining bytes before it
// allocates anything.
//
// After the first error every read returns the zero value. So a caller needs to check Err
// only once, at the end.
type Decoder struct {
	Bytes []byte
	Err   error // nil or ErrMalformed
}

// Fail marks the record as malformed.
func (d *Decoder) Fail() { d.Err = ErrMalformed }

func (d *Decoder) take(n int) []byte {
	if d.Err != nil || n < 0 || n > len(d.Bytes) {
		d.Fail()
		return nil
	}
	taken := d.Bytes[:n:n]
	d.Bytes = d.Bytes[n:]
	return taken
}

// Int32 reads an int.
func (d *Decoder) Int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads a long.
func (d *Decoder) Int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// Buffer reads a buffer, as a part of Bytes. It is nil for the null buffer.
func (d *Decoder) Buffer() []byte {
	n := d.Int32()
	if n == -1 || d.Err != nil {
		return nil
	}
	return d.take(int(n))
}

// String reads a string. It is "" for the null string.
func (d *Decoder) String() string { return string(d.Buffer()) }

// Strings reads a vector of strings. It is nil for the null vector, and not nil for
// the empty one.
func (d *Decoder) Strings() []string { return vector(d, 4, d.String) }

// ACLs reads an access control list. It is nil for the null list.
func (d *Decoder) ACLs() []ACL {
	return vector(d, 3*4, func() ACL { return ACL{Perms: d.Int32(), Scheme: d.String(), ID: d.String()} })
}

// vector reads the elements of a vector. least is the smallest size of an element, in bytes.
// vector stops at the first error.
func vector[T any](d *Decoder, least int, element func() T) []T {
	n := d.Int32()
	if n == -1 || d.Err != nil {
		return nil
	}
	if n < 0 || int(n) > len(d.Bytes)/least {
		d.Fail()
		return nil
	}
	list := make([]T, 0, n)
	for range n {
		if list = append(list, element()); d.Err != nil {
			return nil
		}
	}
	return list
}

// Stat reads a Stat.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid: d.Int64(), Mzxid: d.Int64(), Ctime: d.Int64(), Mtime: d.Int64(),
		Version: d.Int32(), Cversion: d.Int32(), Aversion: d.Int32(),
		EphemeralOwner: d.Int64(), DataLength: d.Int32(), NumChildren: d.Int32(), Pzxid: d.Int64(),
	}
}

// MultiHeader reads the header of a part of a multi. After the last part, done is true.
func (d *Decoder) MultiHeader() (op int32, done bool, code int32) {
	return d.Int32(), d.Bool(), d.Int32()
}

// Encoder appends records to Bytes. The zero value is empty.
type Encoder struct{ Bytes []byte }

// Int32 appends an int.
func (e *Encoder) Int32(v int32) { e.Bytes = binary.BigEndian.AppendUint32(e.Bytes, uint32(v)) }

// Int64 appends a long.
func (e *Encoder) Int64(v int64) { e.Bytes = binary.BigEndian.AppendUint64(e.Bytes, uint64(v)) }

// Bool appends a boolean.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Bytes = append(e.Bytes, 1)
	} else {
		e.Bytes = append(e.Bytes, 0)
	}
}

// Buffer appends a buffer. nil is the null buffer, which differs from the empty buffer.
func (e *Encoder) Buffer(v []byte) {
	if v == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// String appends a string.
func (e *Encoder) String(v string) {
	e.Int32(int32(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// Strings appends a vector of strings, which is never null.
func (e *Encoder) Strings(list ...string) {
	e.Int32(int32(len(list)))
	for _, s := range list {
		e.String(s)
	}
}

// ACLs appends an access control list, which is never null.
func (e *Encoder) ACLs(list ...ACL) {
	e.Int32(int32(len(list)))
	for _, a := range list {
		e.Int32(a.Perms)
		e.String(a.Scheme)
		e.String(a.ID)
	}
}

// Stat appends a Stat.
func (e *Encoder) Stat(s Stat) {
	e.Int64(s.Czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.Cversion)
	e.Int32(s.Aversion)
	e.Int64(s.EphemeralOwner)
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(s.Pzxid)
}

// MultiHeader appends the header of a part of a multi.
func (e *Encoder) MultiHeader(op, code int32) {
	e.Int32(op)
	e.Bool(false)
	e.Int32(code)
}

// MultiEnd appends the end of a multi.
func (e *Encoder) MultiEnd() {
	e.Int32(-1)
	e.Bool(true)
	e.Int32(-1)
}
