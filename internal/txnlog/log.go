package txnlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
)

// Log reads a transaction log.
type Log struct {
	stream *stream
	header Header
	body   []byte
}

// Header is what every record begins with.
type Header struct {
	Session int64 // the session that has sent the request; 0 if it was the server's own
	Cxid    int32 // the client's number of the request; 0 if the server has closed the session
	Zxid    int64
	Time    int64 // the leader's clock, in milliseconds since 1970
	Type    Type
}

const headerSize = 8 + 4 + 8 + 8 + 4

// Next reads the next record. It returns io.EOF at the end of the log, which can be followed by
// zeros. The error matches ErrTorn or ErrCorrupt if the rest of the file cannot be read.
func (l *Log) Next() error {
	start := l.stream.offset
	err := l.next()
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w (at byte %d)", err, start)
	}
	return err
}

// next reads a record: its checksum, its length, its fields and the letter B. The letter is
// written last, so it is missing in a record that is torn in a file that ends with zeros.
func (l *Log) next() error {
	frame, err := l.stream.take(12)
	if errors.Is(err, ErrTorn) && allZero(frame) {
		return io.EOF
	}
	if err != nil {
		return err
	}
	sum, length := binary.BigEndian.Uint64(frame), int(int32(binary.BigEndian.Uint32(frame[8:])))
	switch {
	case length == 0 && sum == 0:
		return io.EOF
	case length < headerSize:
		return ErrTorn
	}
	record, err := l.stream.take(length + 1)
	if errors.Is(err, io.EOF) || err == nil && record[length] != 'B' {
		return ErrTorn
	}
	if err != nil {
		return err
	}
	record = record[:length]
	if uint64(adler32.Checksum(record)) != sum {
		return ErrCorrupt
	}
	if record[12]&0x80 != 0 {
		return fmt.Errorf("%w: its zxid 0x%x is negative", ErrCorrupt, record[12:20])
	}
	l.header = Header{
		Session: int64(binary.BigEndian.Uint64(record)),
		Cxid:    int32(binary.BigEndian.Uint32(record[8:])),
		Zxid:    int64(binary.BigEndian.Uint64(record[12:])),
		Time:    int64(binary.BigEndian.Uint64(record[20:])),
		Type:    Type(binary.BigEndian.Uint32(record[28:])),
	}
	l.body = record[headerSize:]
	return nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Header returns the header of the record that Next has read.
func (l *Log) Header() Header { return l.header }

// Offset returns how many bytes of the file were read.
func (l *Log) Offset() int64 { return l.stream.offset }
