package txnlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"math"

	"github.com/klauspost/compress/s2"
)

// ErrFormat means that a file is neither a log nor a snapshot of ZooKeeper, or that its version
// is unknown.
var ErrFormat = errors.New("not a transaction log or snapshot of ZooKeeper")

// ErrTorn means that a file ends before the end of a record.
var ErrTorn = errors.New("the last record is torn")

// ErrCorrupt means that a record differs from its checksum, or that its fields do not fit into
// it.
var ErrCorrupt = errors.New("the record is corrupt")

// Open reads the header of a file. Exactly one of log and snapshot is not nil. If the file is
// empty, like a log that was created just before a crash, the error is io.EOF.
func Open(r io.Reader) (log *Log, snapshot *Snapshot, err error) {
	s := newStream(r)
	first, err := s.buffered.Peek(1)
	if len(first) == 0 {
		return nil, nil, err
	}
	if err := s.decompress(); err != nil {
		return nil, nil, err
	}
	header, err := s.take(16) // magic, version, an id that ZooKeeper does not use
	if errors.Is(err, ErrTorn) {
		return nil, nil, fmt.Errorf("%w: it is shorter than the header of one", ErrFormat)
	}
	if err != nil {
		return nil, nil, err
	}
	const version = 2 // of all ZooKeepers since 3.0
	magic := string(header[:4])
	switch v := binary.BigEndian.Uint32(header[4:]); {
	case magic != "ZKLG" && magic != "ZKSN":
		return nil, nil, fmt.Errorf("%w: it begins with %q", ErrFormat, header[:4])
	case v != version:
		return nil, nil, fmt.Errorf("%w: its version is %d; known is %d", ErrFormat, v, version)
	case magic == "ZKLG":
		s.sum = nil
		return &Log{stream: s}, nil, nil
	}
	return nil, &Snapshot{s}, nil
}

// stream reads the fields of a file. It never allocates more than the file contains, or
// mostDecompressed if the file is compressed.
type stream struct {
	buffered *bufio.Reader
	large    bytes.Buffer // a field that is larger than buffered's buffer
	sum      hash.Hash32  // of what take has returned; nil for a log, whose records have their own
	offset   int64        // position in the file, or in the content of a compressed one
	most     int          // bytes of a field
}

const bufferSize = 1 << 18

// mostDecompressed bounds a field of a compressed file, which can be a thousand times as large
// as the file. ZooKeeper's own bound is jute.maxbuffer, by default 1 MiB.
const mostDecompressed = 64 << 20

func newStream(r io.Reader) *stream {
	return &stream{buffered: bufio.NewReaderSize(r, bufferSize), sum: adler32.New(), most: math.MaxInt}
}

// take reads n bytes. They are valid until the next call. If the file ends before that, take
// returns the rest and ErrTorn, or io.EOF if there is no rest.
func (s *stream) take(n int) ([]byte, error) {
	if n > s.most {
		return nil, fmt.Errorf("%w: it has a field of %d bytes, and of a compressed file at most %d are read; if that is its size, decompress the file first", ErrCorrupt, n, s.most)
	}
	taken, err := s.buffered.Peek(n)
	switch {
	case err == nil:
		_, _ = s.buffered.Discard(n) // cannot fail: the bytes are buffered
	case errors.Is(err, bufio.ErrBufferFull):
		s.large.Reset()
		_, err = io.CopyN(&s.large, s.buffered, int64(n))
		taken = s.large.Bytes()
	}
	s.offset += int64(len(taken))
	if errors.Is(err, io.EOF) && len(taken) > 0 || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTorn
	}
	if err == nil && s.sum != nil {
		_, _ = s.sum.Write(taken) // a hash never fails
	}
	return taken, err
}

// decompress makes the stream read the decompressed content, if the file is compressed.
// Servers since 3.6 compress snapshots with gzip or Snappy if they are configured to.
func (s *stream) decompress() error {
	magic, _ := s.buffered.Peek(8)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		content, err := gzip.NewReader(s.buffered)
		if err != nil {
			return fmt.Errorf("%w: gzip: %w", ErrCorrupt, err)
		}
		s.buffered, s.most = bufio.NewReaderSize(content, bufferSize), mostDecompressed
	case string(magic) == "\x82SNAPPY\x00":
		if _, err := s.buffered.Discard(16); err != nil { // the magic and two versions
			return ErrTorn
		}
		s.buffered, s.most = bufio.NewReaderSize(&snappyBlocks{from: s.buffered}, bufferSize), mostDecompressed
	}
	return nil
}

// snappyBlocks decodes the format of SnappyOutputStream in Java (snappy-java): blocks, each after
// its length.
type snappyBlocks struct {
	from  *bufio.Reader
	block []byte // decoded, not yet read
	space []byte
}

// largestBlock bounds what is decoded at a time. snappy-java's blocks have 32 KiB.
const largestBlock = 1 << 20

func (b *snappyBlocks) Read(p []byte) (int, error) {
	for len(b.block) == 0 {
		var length [4]byte
		if _, err := io.ReadFull(b.from, length[:]); err != nil {
			return 0, err
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > largestBlock {
			return 0, fmt.Errorf("%w: a Snappy block of %d bytes", ErrCorrupt, n)
		}
		encoded := make([]byte, n)
		if _, err := io.ReadFull(b.from, encoded); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if n, err := s2.DecodedLen(encoded); err != nil || n > largestBlock {
			return 0, fmt.Errorf("%w: a Snappy block that decodes to %d bytes", ErrCorrupt, n)
		}
		var err error
		if b.block, err = s2.Decode(b.space, encoded); err != nil {
			return 0, fmt.Errorf("%w: Snappy: %w", ErrCorrupt, err)
		}
		b.space = b.block[:cap(b.block)]
	}
	n := copy(p, b.block)
	b.block = b.block[n:]
	return n, nil
}
