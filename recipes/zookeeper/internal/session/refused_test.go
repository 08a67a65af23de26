package session_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Some reads are several requests, sent together. If the server refuses one of them, that is
// the result: after a refused sync, the read may come from a server that lags.
func TestAPartThatIsRefusedIsAnError(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	must.Get(s.CreateNamed(ctx, "/x", []byte("data")))(t)
	var places [3]session.BareZnode // the watch on each is set once
	for i := range places {
		places[i] = bare(t, s, "/line")
	}
	predecessor := func(place session.BareZnode) func() error {
		return func() error { _, _, _, err := s.Predecessor(ctx, place, "/x"); return err }
	}
	for _, test := range []struct {
		name string
		op   zkserver.Op
		ask  func() error
	}{
		{"GetOwn", zkserver.OpGetData, func() error { _, err := s.GetOwn(ctx, "/x"); return err }},
		{"Predecessor", zkserver.OpGetData, predecessor(places[0])},
		{"Predecessor", zkserver.OpSetWatches, predecessor(places[1])},
		{"BareW", zkserver.OpSetWatches, func() error { _, err := s.BareW(ctx, places[2]); return err }},
		{"List", zkserver.OpGetChildren2, func() error { _, _, err := s.List(ctx, "/"); return err }},
		{"Children", zkserver.OpGetChildren2, func() error { _, err := s.Children(ctx, "/"); return err }},
		{"ChildrenW", zkserver.OpGetChildren2, func() error { _, _, err := s.ChildrenW(ctx, "/"); return err }},
		{"DeletionW", zkserver.OpGetChildren2, func() error { _, _, err := s.DeletionW(ctx, "/x"); return err }},
		{"Get", zkserver.OpGetData, func() error { _, err := s.Get(ctx, "/x"); return err }},
		{"GetW", zkserver.OpGetData, func() error { _, _, err := s.GetW(ctx, "/x"); return err }},
		{"ExistsW", zkserver.OpExists, func() error { _, _, err := s.ExistsW(ctx, "/x"); return err }},
		{"Stat", zkserver.OpExists, func() error { _, err := s.Stat(ctx, "/x"); return err }},
		{"Sync", zkserver.OpSync, func() error { return s.Sync(ctx, "/") }},
		{"Create", zkserver.OpExists, func() error { return s.Create(ctx, "/y", nil) }},
		{"Create", zkserver.OpCreate, func() error { return s.Create(ctx, "/y", nil) }},
	} {
		met := at(srv, test.op, faultOf(zkserver.Fault{Throttle: true}))
		if err := test.ask(); !errors.Is(err, recipes.ErrThrottled) || !met() {
			t.Errorf("%s, %v refused: %v (met: %v)", test.name, test.op, err, met())
		}
		srv.SetFault(nil)
		if err := test.ask(); err != nil {
			t.Errorf("%s, %v not refused: %v", test.name, test.op, err)
		}
		if test.name == "Create" {
			must.Report(t, s.DeleteOnce(ctx, "/y", -1))
		}
	}
}

// The refusal of the list of a resumed session's znodes is an error too.
func TestARefusedListOfWhatIsLeftOverIsAnError(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	first := open(t, to(srv))
	must.Get(first.CreateNamed(ctx, "/x", nil))(t)
	s := resume(t, to(srv), letGo(t, first))
	for _, op := range []zkserver.Op{zkserver.OpGetEphemerals, zkserver.OpExists} {
		met := at(srv, op, faultOf(zkserver.Fault{Throttle: true}))
		if err := s.DropRest(ctx, none); !errors.Is(err, recipes.ErrThrottled) || !met() {
			t.Errorf("%v refused: %v (met: %v)", op, err, met())
		}
	}
	must.Report(t, s.DropRest(ctx, none))
	if _, err := s.Stat(ctx, "/x"); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("the rest: %v", err)
	}
}

// refuser relays bytes between clients and a server. It can replace the server's replies to one
// operation by a refusal, for example of credentials: no server refuses those of the digest
// scheme.
// the digest scheme.
type refuser struct {
	addr   string
	op     int32
	code   int32
	body   []byte // if not nil, it replaces the reply's body
	refuse atomic.Bool
}

const (
	opAuth         = 100
	opSetWatches   = 101
	errAuthFailed  = -115
	errThrottledOp = -127 // from a server whose operator limits how long requests may wait
)

func newRefuser(t *testing.T, server string, op, code int32) *refuser {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &refuser{addr: l.Addr().String(), op: op, code: code}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(client, server) })
		}
	})
	return r
}

func (r *refuser) pass(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		client.Close()
		return
	}
	var last atomic.Int32 // xid of the last such request
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			frame, err := readFrame(client)
			if err != nil {
				break
			}
			if n > 0 && len(frame) >= 12 && int32(binary.BigEndian.Uint32(frame[8:])) == r.op {
				last.Store(int32(binary.BigEndian.Uint32(frame[4:])))
			}
			server.Write(frame)
		}
		server.Close()
	}()
	for n := 0; ; n++ {
		frame, err := readFrame(server)
		if err != nil {
			break
		}
		if n > 0 && r.refuse.Load() && int32(binary.BigEndian.Uint32(frame[4:])) == last.Load() {
			if r.body == nil {
				binary.BigEndian.PutUint32(frame[16:], uint32(r.code))
			} else {
				frame = append(frame[:20], r.body...)
				binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			}
		}
		client.Write(frame)
	}
	client.Close()
	<-done
}

func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	frame := append(length[:], make([]byte, binary.BigEndian.Uint32(length[:]))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
