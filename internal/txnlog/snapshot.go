package txnlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Snapshot reads a snapshot.
type Snapshot struct{ stream *stream }

// Node is a znode in a snapshot. Path and Data are valid until the next one is read.
type Node struct {
	Path, Data []byte // Data is nil for null

	Czxid, Mzxid   int64
	Ctime, Mtime   int64 // milliseconds since 1970
	Version        int32
	EphemeralOwner int64 // as in ZooKeeper's Stat, so not 0 for containers and TTL nodes
}

// persistedStat is the size of a StatPersisted: the fields of a Stat without those that
// ZooKeeper computes.
const persistedStat = 6*8 + 3*4

// Read passes each session with its timeout in milliseconds, and then each znode in any order. The
// path of the root is "". Either function can be nil. After an error, what was passed cannot be
// trusted: the checksum is at the end.
func (s *Snapshot) Read(session func(id int64, timeout int32), node func(*Node)) error {
	err := s.read(session, node)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTorn
	}
	if err != nil {
		return fmt.Errorf("%w (at byte %d of its content)", err, s.stream.offset)
	}
	return nil
}

func (s *Snapshot) read(session func(int64, int32), node func(*Node)) error {
	for range s.count() {
		d := s.fields(12)
		id, timeout := d.Int64(), d.Int32()
		if d.Err != nil {
			return ErrTorn
		}
		if session != nil {
			session(id, timeout)
		}
	}
	for range s.count() { // access control lists: an index, and the entries
		if _, err := s.stream.take(8); err != nil {
			return err
		}
		for range s.count() {
			if _, err := s.stream.take(4); err != nil {
				return err
			}
			for range 2 {
				if _, err := s.buffer(nil); err != nil {
					return err
				}
			}
		}
	}
	if err := s.nodes(node); err != nil {
		return err
	}
	sum := s.stream.sum.Sum32() // before the checksum itself
	stored, err := s.stream.take(8)
	if err != nil {
		return err
	}
	if binary.BigEndian.Uint64(stored) != uint64(sum) {
		return ErrCorrupt
	}
	return nil
}

// nodes reads the znodes. The path "/" ends them.
func (s *Snapshot) nodes(pass func(*Node)) error {
	var n Node
	for {
		var err error
		if n.Path, err = s.buffer(n.Path); err != nil {
			return err
		}
		if string(n.Path) == "/" {
			return nil
		}
		if n.Data, err = s.buffer(n.Data); err != nil {
			return err
		}
		d := s.fields(8 + persistedStat)
		d.Int64() // the access control list
		n.Czxid, n.Mzxid, n.Ctime, n.Mtime = d.Int64(), d.Int64(), d.Int64(), d.Int64()
		n.Version = d.Int32()
		d.Int32() // of the children
		d.Int32() // of the access control list
		n.EphemeralOwner = d.Int64()
		if d.Err != nil {
			return ErrTorn
		}
		if pass != nil {
			pass(&n)
		}
	}
}

// fields returns a decoder of the next n bytes, or of none if the file ends before.
func (s *Snapshot) fields(n int) jute.Decoder {
	taken, err := s.stream.take(n)
	if err != nil {
		return jute.Decoder{Err: jute.ErrMalformed}
	}
	return jute.Decoder{Bytes: taken}
}

// count reads a number of elements. A wrong one ends in an error of take.
func (s *Snapshot) count() int32 {
	d := s.fields(4)
	return d.Int32()
}

// buffer reads a buffer or a string into space. It is nil for null.
func (s *Snapshot) buffer(space []byte) ([]byte, error) {
	d := s.fields(4)
	n := d.Int32()
	switch {
	case d.Err != nil:
		return nil, ErrTorn
	case n == -1:
		return nil, nil
	case n < 0:
		return nil, ErrCorrupt
	}
	taken, err := s.stream.take(int(n))
	return append(space[:0], taken...), err
}
