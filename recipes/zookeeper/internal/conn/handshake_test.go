package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// answering returns a server's answer to a connect request, without its length.
func answering(version, timeout int32, id int64, password, rest []byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, uint32(version))
	body = binary.BigEndian.AppendUint32(body, uint32(timeout))
	body = binary.BigEndian.AppendUint64(body, uint64(id))
	body = binary.BigEndian.AppendUint32(body, uint32(len(password)))
	return append(append(body, password...), rest...)
}

// dialogue is a wire with go-zookeeper. Its n-th connection reaches a server that answers the
// connect request with the n-th bytes, and nothing else.
type dialogue struct {
	*Wire
	log *bytes.Buffer

	mu       sync.Mutex
	answers  [][]byte
	dials    int
	accepted []int64
	lost     error
	conns    []net.Conn
	requests [][]int32 // on each connection, after the connect request
}

func newDialogue(t *testing.T, answers ...[]byte) *dialogue {
	d := &dialogue{log: new(bytes.Buffer), answers: answers}
	cfg := must.Get((recipes.SessionConfig{Servers: []string{"server:2181"}, SessionTimeout: scriptTimeout}).Normalize())(t)
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: d.log, Level: hclog.Warn})
	life, end := context.WithCancelCause(context.Background())
	var err error
	d.Wire, err = New(Config{
		SessionConfig: cfg, Dial: d.dial, Lease: lease.New(time.Now()), Life: life,
		Accepted:  func(id int64) { d.accepted = append(d.accepted, id) },
		Connected: func() {}, Suspended: func() {}, Fired: func(Event, string) {},
		Lost: func(reason error) {
			d.lost = reason
			end(reason)
			d.Shut()
		},
	})
	must.Do(t, err)
	return d
}

func (d *dialogue) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.dials
	d.dials++
	if n >= len(d.answers) {
		// In a bubble time stands still while another goroutine waits for mu.
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	d.conns = append(d.conns, server)
	d.requests = append(d.requests, nil)
	go func() {
		if skipFrame(server) == nil {
			go server.Write(d.answers[n])
			d.receive(n, server)
		}
	}()
	return client, nil
}

// receive records the operations of the requests on the n-th connection, and answers those to auth.
func (d *dialogue) receive(n int, server net.Conn) {
	for {
		head := make([]byte, lengthSize+8)
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, server, int64(binary.BigEndian.Uint32(head))-8); err != nil {
			return
		}
		op := int32(binary.BigEndian.Uint32(head[lengthSize+4:]))
		d.mu.Lock()
		d.requests[n] = append(d.requests[n], op)
		d.mu.Unlock()
		if op == opAuth {
			reply := append(head[lengthSize:lengthSize+4:lengthSize+4], make([]byte, replyHeaderSize-4)...)
			go server.Write(frame(replyHeaderSize, reply...))
		}
	}
}

// received returns the operations of the requests on the n-th connection, without pings.
func (d *dialogue) received(n int) []int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.requests[n]), func(op int32) bool { return op == opPing })
}

// run connects, and returns a while after all servers have answered.
func (d *dialogue) run(t *testing.T) {
	t.Helper()
	must.Do(t, d.Connect())
	time.Sleep(scriptTimeout / 10)
	synctest.Wait()
}

func (d *dialogue) end() {
	d.Shut()
	d.Drop()
	for _, c := range d.conns {
		c.Close()
	}
	d.Close()
	d.Wait()
}

// A server whose answer go-zookeeper cannot use costs one attempt: the next server is tried, and
// the log says which server answered what. A ticker of go-zookeeper panics if the timeout is not
// positive, and all sessions of the process end.
func TestAWrongAnswerToTheHandshakeCostsOneAttempt(t *testing.T) {
	good := accepting(password)
	for name, test := range map[string]struct {
		answer []byte
		want   string
	}{
		"no timeout":                    {answering(0, 0, 7, password, nil), "timeout 0 ms"},
		"a negative timeout":            {answering(0, -1, 7, password, nil), "timeout -1 ms"},
		"the least timeout":             {answering(0, math.MinInt32, 7, password, nil), "timeout -2147483648 ms"},
		"another protocol":              {answering(1, 1000, 7, password, nil), "protocol version 1"},
		"ClickHouse Keeper's rejection": {answering(keeperRejects, 1000, -1, password, nil), "no leader"},
		"no session":                    {answering(0, 0, 0, password, nil), "no session"},
		"no password":                   {answering(0, 1000, 7, nil, nil), "password of 0 bytes"},
		"a short password":              {answering(0, 1000, 7, password[1:], nil), "password of 15 bytes"},
		"a long password":               {answering(0, 1000, 7, make([]byte, 400), nil), "password of 400 bytes"},
		"a password that is cut off":    {answering(0, 1000, 7, password, nil)[:35], "malformed"},
		"a null password":               {append(answering(0, 1000, 7, nil, nil)[:16], 0xff, 0xff, 0xff, 0xff), "password of 0 bytes"},
		"a password of negative length": {append(answering(0, 1000, 7, nil, nil)[:16], 0x80, 0, 0, 0), "malformed"},
		"read-only mode":                {answering(0, 1000, 7, password, []byte{1}), "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialogue(t, frame(int32(len(test.answer)), test.answer...), frame(int32(len(good)), good...))
				defer d.end()
				d.run(t)
				if d.dials != 2 || len(d.accepted) != 1 || d.accepted[0] != sessionID || d.lost != nil {
					t.Errorf("%d attempts, accepted %v, lost with %v", d.dials, d.accepted, d.lost)
				}
				if got := d.Lease.Timeout(); got != scriptTimeout {
					t.Errorf("the timeout is %v", got)
				}
				if log := d.log.String(); !strings.Contains(log, test.want) || !strings.Contains(log, "server=pipe") {
					t.Errorf("the log lacks %q and the server: %s", test.want, log)
				}
			})
		})
	}
}

// A usable session is accepted, whatever timeout the server grants. It may be larger than
// requested (minSessionTimeout), or smaller (maxSessionTimeout).
func TestTheBoundsOfAnAnswerToTheHandshake(t *testing.T) {
	for name, answer := range map[string][]byte{
		"the shortest timeout":            answering(0, 1, sessionID, password, nil),
		"the longest timeout":             answering(0, math.MaxInt32, sessionID, password, nil),
		"a negative session id":           answering(0, 1000, math.MinInt64, password, nil),
		"not read-only":                   answering(0, 1000, sessionID, password, []byte{0}),
		"fields of a later version":       answering(0, 1000, sessionID, password, []byte{0, 1, 2, 3}),
		"as long as a handshake may be":   answering(0, 1000, sessionID, password, make([]byte, maxHandshake-36)),
		"a timeout as short as asked for": answering(0, int32(scriptTimeout.Milliseconds()), sessionID, password, nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialogue(t, frame(int32(len(answer)), answer...))
				defer d.end()
				must.Do(t, d.Connect())
				synctest.Wait()
				if d.dials != 1 || len(d.accepted) != 1 || d.log.Len() > 0 {
					t.Errorf("%d attempts, accepted %v; %s", d.dials, d.accepted, d.log)
				}
			})
		})
	}
}

// A session moves to a server that grants half of the timeout, and its last contact is older than
// that half. The handshake is a contact, so the session is not lost. If the server has not accepted
// the credentials yet, the smaller timeout counts, and the handshake does not.
func TestASmallerTimeoutCountsFromItsHandshake(t *testing.T) {
	for _, credentials := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t)
			begun, lost := time.Now(), time.Duration(0)
			newScript(t, w).handshakeIn(0)
			w.Lease.Start(func(error) { lost = time.Since(begun) })
			defer w.Lease.Stop()
			time.Sleep(scriptTimeout * 3 / 5)
			if credentials {
				w.Digest = &recipes.Digest{User: "u", Password: "p"}
			}
			s := newScript(t, w)
			s.Conn.failed = func(error) {}
			s.send(connectRequest(int32(scriptTimeout.Milliseconds()), sessionID, password))
			answer := answering(0, int32(scriptTimeout.Milliseconds()/2), sessionID, password, nil)
			go s.server.Write(frame(int32(len(answer)), answer...))
			go s.Conn.Read(make([]byte, 1))
			synctest.Wait()
			if credentials {
				if lost != scriptTimeout*3/5 {
					t.Errorf("without an answer to the credentials, lost after %v", lost)
				}
			} else if remaining := w.Lease.Remaining(); lost != 0 || remaining != scriptTimeout/2*19/20 {
				t.Errorf("lost after %v, remaining %v", lost, remaining)
			}
			s.Conn.Close()
			synctest.Wait()
		})
	}
}

// FuzzHandshake sends arbitrary bytes to a connection and to go-zookeeper behind it: the answer
// to the connect request, and what follows it.
func FuzzHandshake(f *testing.F) {
	seed := func(body []byte, rest ...byte) { f.Add(append(frame(int32(len(body)), body...), rest...)) }
	seed(accepting(password))
	seed(answering(0, 1000, 7, password, []byte{0}))
	seed(answering(0, 0, 7, password, nil))
	seed(answering(0, -1, 7, password, nil))
	seed(answering(0, 1, 7, password, nil))
	seed(answering(0, math.MaxInt32, 7, password, nil))
	seed(answering(0, 0, 0, password, nil))
	seed(answering(0, 1000, 7, make([]byte, 400), nil))
	seed(answering(keeperRejects, 1000, -1, password, nil))
	header := append([]byte{0xff, 0xff, 0xff, 0xfe}, make([]byte, replyHeaderSize-4)...)
	seed(accepting(password), frame(replyHeaderSize, header...)...)
	seed(accepting(password), frame(replyHeaderSize+4, append(header, 1, 2, 3, 4)...)...)
	event := append(eventHeader(), 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a')
	seed(accepting(password), frame(int32(len(event)), event...)...)
	f.Fuzz(func(t *testing.T, answer []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := newDialogue(t, answer)
			defer d.end()
			must.Do(t, d.Connect())
			time.Sleep(scriptTimeout) // the first pings are due
			synctest.Wait()
			if len(d.accepted) > 0 {
				if timeout := d.Lease.Timeout(); timeout < time.Millisecond || d.ID() == 0 || len(d.Password()) != PasswordSize {
					t.Errorf("accepted with timeout %v, session %#x and a password of %d bytes", timeout, d.ID(), len(d.Password()))
				}
			}
		})
	})
}
