package zkserver_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// server is a Server or one of its followers.
type server interface{ ServeConn(net.Conn) }

// simulate runs a test on virtual time, against a server over pipes.
func simulate(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{})
		defer s.Close()
		test(t, s)
	})
}

// connect opens or resumes a session over a pipe.
func connect(t *testing.T, s server, from *rawClient) *rawClient {
	t.Helper()
	return must.Get(tryConnect(s, from))(t)
}

func tryConnect(s server, from *rawClient) (*rawClient, error) {
	near, far := net.Pipe()
	go s.ServeConn(far)
	o := connectOptions{timeout: 10000}
	if from != nil {
		o.session, o.password = from.session, from.password
	}
	return handshake("c", near, o)
}

// do sends a request and returns the code of its reply. It returns an error if the
// connection ends first. It skips events before the reply.
func (c *rawClient) do(op string, words ...string) (code int32, err error) {
	p := player{}
	if err := c.send(opCodes[op], p.parse(words).body(opCodes[op])); err != nil {
		return 0, errClosed
	}
	return c.reply()
}

// ok does a request that must succeed.
func (c *rawClient) ok(t *testing.T, op string, words ...string) {
	t.Helper()
	code, err := c.do(op, words...)
	wantOK(t, code, err)
}

func (c *rawClient) reply() (code int32, err error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return 0, err
		}
		r := reader{frame}
		xid, _, code := r.i32(), r.i64(), r.i32()
		if xid != -1 {
			c.pending = c.pending[1:]
			return code, nil
		}
	}
}

func wantOK(t *testing.T, code int32, err error) {
	t.Helper()
	if code != 0 || err != nil {
		t.Fatalf("reply: %s, %v", codeName(code), err)
	}
}

func wantClosed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errClosed) {
		t.Fatalf("connection should be closed, got %v", err)
	}
}

func exists(s *zkserver.Server, path string) bool {
	for _, n := range s.Tree() {
		if n.Path == path {
			return true
		}
	}
	return false
}
