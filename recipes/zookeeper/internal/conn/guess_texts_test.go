package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A server that refuses a client ends the connection in one of these ways.
func TestReasonsWhenAServerHangsUp(t *testing.T) {
	other := errors.New("something else")
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	broken := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}
	for _, test := range []struct {
		err  error
		hung bool
	}{{io.EOF, true}, {io.ErrUnexpectedEOF, true}, {reset, true}, {broken, true}, {os.ErrDeadlineExceeded, false}, {other, false}} {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
			if hungUp(err) != test.hung {
				t.Errorf("hungUp(%v) is %v", err, !test.hung)
			}
			client, server := net.Pipe()
			defer client.Close()
			defer server.Close()
			plain, secured := &Conn{Conn: client}, &Conn{Conn: tls.Client(client, &tls.Config{})}
			spoke := &Conn{Conn: client, head: [len(plain.head)]byte{3: 1}}
			for text, got := range map[string]error{
				"does it speak TLS there?":              plain.refused(err),
				"does it refuse the client's":           secured.refused(err),
				"probably the server speaks no TLS the": refusedTLS("server", err),
			} {
				if strings.Contains(got.Error(), text) != test.hung || !errors.Is(got, test.err) {
					t.Errorf("of %v it says %v", err, got)
				}
			}
			if got := spoke.refused(err); strings.Contains(got.Error(), "closed the connection") {
				t.Errorf("of a server that had answered, and then %v, it says %v", err, got)
			}
		}
	}
	if got := refusedTLS("server", tls.RecordHeaderError{Msg: "no TLS"}); !strings.Contains(got.Error(), "probably the server speaks no TLS there") {
		t.Errorf("of an answer that is not TLS it says %v", got)
	}
}
