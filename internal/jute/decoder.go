package jute

import (
	"encoding/binary"
	"errors"
)

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
