package carry

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// size returns an upper bound of a call's size in a message, in bytes.
func size(c *pb.Call) int {
	n := len(c.GetMethod()) + len(c.GetPayload()) + 64
	for k, v := range c.GetMetadata() {
		n += len(k) + len(v) + 16
	}
	return n
}

// toTimeout returns the time until ctx's deadline; nil if it has none.
func toTimeout(ctx context.Context) *durationpb.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return nil
	}
	return durationpb.New(time.Until(end))
}

// toMetadata returns ctx's outgoing metadata. ok is false if a Call cannot carry it.
func toMetadata(ctx context.Context) (m map[string]string, ok bool) {
	md, found := metadata.FromOutgoingContext(ctx)
	if !found {
		return nil, true
	}
	m = make(map[string]string, len(md))
	for k, values := range md {
		if len(values) != 1 || strings.HasSuffix(k, "-bin") || !utf8.ValidString(k) || !utf8.ValidString(values[0]) {
			return nil, false
		}
		m[k] = values[0]
	}
	return m, true
}

// toStatus returns the status of a failed call, as bytes for an Answer. It is never empty,
// not even for an error with code OK.
func toStatus(err error) []byte {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	if s.Code() == codes.OK {
		s = status.New(codes.Internal, err.Error())
	}
	b, merr := proto.Marshal(s.Proto())
	if merr != nil {
		b, _ = proto.Marshal(&spb.Status{Code: int32(s.Code())}) // its message was not UTF-8
	}
	return b
}

func fromStatus(b []byte) error {
	var s spb.Status
	if err := proto.Unmarshal(b, &s); err != nil {
		return status.Errorf(codes.Internal, "the status of a failed call: %v", err)
	}
	if s.GetCode() == int32(codes.OK) {
		return status.Error(codes.Internal, "a call has failed with status OK")
	}
	return status.ErrorProto(&s)
}

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
	f.out = b
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
		return fmt.Errorf("%w: a message of %d bytes; at most %d", recipes.ErrLimit, n, f.most)
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

// Capability is the name of this package's feature among a plugin's capabilities.
const Capability = "call-connection"

// The limits of one connection, unless the plugin accepts only smaller messages. MaxCalls is
// as large as the limit on sessions, because a waiting call counts as long as it waits.
const (
	MaxCalls   = 16 << 10 // without an answer
	MaxBytes   = 16 << 20 // of their payloads
	MaxPayload = 32 << 10 // of one call, in bytes
	maxMessage = 64 << 10 // in bytes

	maxResponse = 1 << 20 // a message of the plugin's, in bytes
)

// part is the size of the parts of a long answer, in bytes.
const part = 32 << 10

// MaxUnsent and MaxKept are limits for a host that does not read, in bytes of answers. One answer above
// MaxUnsent at a time is sent besides them, and the others wait in their calls. Each
// answer counts answerOverhead more than its size. Beyond MaxUnsent the plugin reads no more
// calls. Running calls continue, and may have answers of any size. Beyond MaxKept the
// connection ends.
const (
	MaxUnsent = 4 << 20
	MaxKept   = 64 << 20
)

// answerOverhead is the memory of an answer besides its payload and its status, in bytes. MaxUnsent
// allows one small answer for each call: MaxUnsent / answerOverhead is MaxCalls.
const answerOverhead = 256

// overhead bounds the size of a call in a message besides its payload, in bytes: method and
// metadata. A call that has more is made by gRPC.
const overhead = 2 << 10

// limitsFor returns the limits of a plugin that accepts messages of that size.
func limitsFor(message int) *pb.Limits {
	message = min(maxMessage, cmp.Or(message, maxMessage))
	return &pb.Limits{Calls: MaxCalls, Bytes: MaxBytes, Payload: uint32(max(0, min(MaxPayload, message-overhead))), Message: uint32(message)}
}

// limits returns a plugin's limits, but no more than a host needs.
func limits(l *pb.Limits) *pb.Limits {
	return &pb.Limits{
		Calls:   min(l.GetCalls(), MaxCalls),
		Bytes:   min(l.GetBytes(), MaxBytes),
		Payload: min(l.GetPayload(), MaxPayload),
		Message: min(l.GetMessage(), maxMessage),
	}
}
