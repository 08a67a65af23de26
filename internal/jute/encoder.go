package jute

import "encoding/binary"

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
