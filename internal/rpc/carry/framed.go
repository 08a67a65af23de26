package carry

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Protocol is the protocol name (ALPN) by which a host requests, in its TLS handshake, that
// calls go over the connection itself. The plugin confirms it.
const Protocol = "zkrecipes-calls"

// lengthSize is the size of the length field before each message, in bytes.
const lengthSize = 4

// framed is a connection for messages, each preceded by its length. One goroutine may
// receive. Each message is sent as a whole.
type framed struct {
	conn net.Conn
	in   *bufio.Reader
	most int // the size limit of a received message, in bytes

	mu  sync.Mutex
	out []byte // reused for the next message
}

func newFramed(conn net.Conn, most int) *framed {
	return &framed{conn: conn, in: bufio.NewReaderSize(conn, maxMessage), most: most}
}

// send sends a message in one write, which is one TLS record if the message is small.
func (f *framed) send(m proto.Message) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, err := proto.MarshalOptions{}.MarshalAppend(append(f.out[:0], make([]byte, lengthSize)...), m)
	if err != nil {
		_ = f.conn.Close() // the read fails too, and reports it
		return err
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
	if cap(b) <= 2*maxMessage {
		f.out = b
	}
	if _, err = f.conn.Write(b); err != nil {
		// The other side has closed the connection, and may have sent the reason before. The
		// deadline leaves receive the time to read it.
		_ = f.conn.SetReadDeadline(time.Now().Add(closeReadTimeout))
	}
	return err
}

// closeReadTimeout bounds how long a connection is still read after a write has failed.
const closeReadTimeout = time.Second

// receive reads a message. Its error matches recipes.ErrLimit if the message is too long, and
// recipes.ErrInvalid if it cannot be parsed. The end of the connection matches neither.
func (f *framed) receive(m proto.Message) error {
	head, err := f.in.Peek(lengthSize)
	if err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head))
	if n > int64(f.most) {
		return fmt.Errorf("%w: a message of %d bytes", recipes.ErrLimit, n)
	}
	_, _ = f.in.Discard(lengthSize)
	b, err := f.next(int(n))
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(b, m); err != nil { // copies what it keeps of b
		return fmt.Errorf("%w: a message: %v", recipes.ErrInvalid, err)
	}
	return nil
}

// next returns the next n bytes, which are valid until the next read.
func (f *framed) next(n int) ([]byte, error) {
	if n <= f.in.Size() {
		b, err := f.in.Peek(n)
		_, _ = f.in.Discard(len(b))
		return b, err
	}
	b := make([]byte, n)
	_, err := io.ReadFull(f.in, b)
	return b, err
}

// Abrupt returns the connection secured, which runs over raw. Its Close does not wait for the
// other side to read TLS's last alert.
func Abrupt(secured, raw net.Conn) net.Conn { return abrupt{secured, raw} }

type abrupt struct {
	net.Conn
	raw net.Conn
}

func (a abrupt) Close() error { return a.raw.Close() }
