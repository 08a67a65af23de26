package zkserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// rawClient speaks the wire protocol and returns every frame of the server. It shares no
// code with the server.
type rawClient struct {
	name     string
	nc       net.Conn
	session  int64
	password []byte
	timeout  int32
	xid      int32
	protocol int32
	pending  []sent // requests without a reply, in order
	refused  bool   // the last request was not implemented
}

type sent struct {
	xid, op int32
}

// patience bounds the wait for a frame. Only a run that hangs reaches it.
const patience = watchdog.Patience

var errClosed = errors.New("closed")

type buf struct{ b []byte }

func (w *buf) i32(v int32)  { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }
func (w *buf) i64(v int64)  { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }
func (w *buf) str(s string) { w.i32(int32(len(s))); w.b = append(w.b, s...) }
func (w *buf) bool(v bool) {
	if v {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

// blob writes null for nil.
func (w *buf) blob(v []byte) {
	if v == nil {
		w.i32(-1)
		return
	}
	w.str(string(v))
}

func (w *buf) strs(list []string) {
	w.i32(int32(len(list)))
	for _, s := range list {
		w.str(s)
	}
}

// reader panics on short input: the runner recovers and reports it.
type reader struct{ b []byte }

func (r *reader) i32() int32 {
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return int32(v)
}

func (r *reader) i64() int64 {
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return int64(v)
}

func (r *reader) bool() bool {
	v := r.b[0]
	r.b = r.b[1:]
	return v != 0
}

func (r *reader) blob() []byte {
	n := r.i32()
	if n < 0 {
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) str() string { return string(r.blob()) }

func (r *reader) strs() []string {
	var list []string
	for n := r.i32(); n > 0; n-- {
		list = append(list, r.str())
	}
	return list
}

func (c *rawClient) write(body []byte) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	_, err := c.nc.Write(append(frame, body...))
	return err
}

func (c *rawClient) frame() ([]byte, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, closedOr(err)
	}
	var head [4]byte
	if _, err := io.ReadFull(c.nc, head[:]); err != nil {
		return nil, closedOr(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.nc, body)
	return body, closedOr(err)
}

// closedOr returns errClosed for each error that means that the connection has ended.
func closedOr(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return errClosed
}

// connectOptions are the fields of a handshake.
type connectOptions struct {
	timeout  int32
	session  int64
	password []byte
	lastZxid int64
	old      bool // a client from before read-only mode
	keeper   bool // the server does not answer the field of that mode
}

func dial(name, addr string, o connectOptions) (*rawClient, error) {
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return handshake(name, nc, o)
}

func handshake(name string, nc net.Conn, o connectOptions) (*rawClient, error) {
	c := &rawClient{name: name, nc: nc}
	var w buf
	w.i32(0)
	w.i64(o.lastZxid)
	w.i32(o.timeout)
	w.i64(o.session)
	if o.password == nil {
		o.password = make([]byte, 16) // 3.4 never answers a null password
	}
	w.blob(o.password)
	if !o.old {
		w.bool(false)
	}
	if err := c.write(w.b); err != nil {
		return nil, closedOr(err)
	}
	body, err := c.frame()
	if err != nil {
		nc.Close()
		return nil, err
	}
	r := reader{body}
	c.protocol, c.timeout, c.session, c.password = r.i32(), r.i32(), r.i64(), r.blob()
	if bare := o.old || o.keeper; bare && len(r.b) != 0 || !bare && len(r.b) != 1 {
		return nil, fmt.Errorf("connect reply has %d bytes left", len(r.b))
	}
	return c, nil
}

// opCodes are the names of the requests in scripts.
var opCodes = map[string]int32{
	"create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6, "setACL": 7,
	"getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12, "check": 13, "multi": 14,
	"create2": 15, "checkWatches": 17, "removeWatches": 18, "createContainer": 19,
	"createTTL": 21, "multiRead": 22, "auth": 100, "setWatches": 101, "getEphemerals": 103,
	"getAllChildrenNumber": 104, "setWatches2": 105, "addWatch": 106, "closeSession": -11,
}

func (c *rawClient) send(op int32, body []byte) error {
	c.xid++
	xid := c.xid
	switch op {
	case 11:
		xid = -2
	case 100:
		xid = -4
	case 101, 105:
		xid = -8
	}
	var w buf
	w.i32(xid)
	w.i32(op)
	c.pending = append(c.pending, sent{xid: xid, op: op})
	return c.write(append(w.b, body...))
}

// args are the words of a script line after the operation.
type args struct {
	path  string
	words []string
	vals  map[string]string
}

func (a args) num(key string, otherwise int64) int64 {
	if v, ok := a.vals[key]; ok {
		n, err := strconv.ParseInt(v, 0, 64)
		if err != nil {
			panic(fmt.Sprintf("%s=%s: %v", key, v, err))
		}
		return n
	}
	return otherwise
}

func (a args) has(word string) bool {
	for _, w := range a.words {
		if w == word {
			return true
		}
	}
	return false
}

func (a args) list(key string) []string {
	if a.vals[key] == "" {
		return nil
	}
	return strings.Split(a.vals[key], ",")
}

func (a args) data() []byte {
	if n := a.num("size", -1); n >= 0 {
		return []byte(strings.Repeat("x", int(n)))
	}
	v, ok := a.vals["data"]
	if v == "null" {
		return nil
	}
	if !ok {
		return []byte{}
	}
	return []byte(v)
}

var flagNames = map[string]int64{
	"": 0, "e": 1, "s": 2, "es": 3, "c": 4, "t": 5, "ts": 6,
}

func (a args) flags() int32 {
	if n, ok := flagNames[a.vals["flags"]]; ok {
		return int32(n)
	}
	return int32(a.num("flags", 0))
}

func (a args) acl(w *buf) {
	spec, ok := a.vals["acl"]
	switch {
	case !ok:
		spec = "world:anyone:31"
	case spec == "null":
		w.i32(-1)
		return
	case spec == "":
		w.i32(0)
		return
	}
	entries := strings.Split(spec, ",")
	w.i32(int32(len(entries)))
	for _, e := range entries {
		scheme, rest, _ := strings.Cut(e, ":")
		i := strings.LastIndexByte(rest, ':')
		perms, err := strconv.Atoi(rest[i+1:])
		if err != nil {
			panic("acl " + e)
		}
		w.i32(int32(perms))
		w.str(scheme)
		w.str(rest[:i])
	}
}

// body encodes a request record.
func (a args) body(op int32) []byte {
	var w buf
	switch op {
	case 1, 15, 19, 21:
		w.str(a.path)
		w.blob(a.data())
		a.acl(&w)
		w.i32(a.flags())
		if op == 21 {
			w.i64(a.num("ttl", 0))
		}
	case 2, 13:
		w.str(a.path)
		w.i32(int32(a.num("version", -1)))
	case 5:
		w.str(a.path)
		w.blob(a.data())
		w.i32(int32(a.num("version", -1)))
	case 3, 4, 8, 12:
		w.str(a.path)
		w.bool(a.has("watch"))
	case 6, 9, 103, 104:
		w.str(a.path)
	case 7:
		w.str(a.path)
		a.acl(&w)
		w.i32(int32(a.num("version", -1)))
	case 17, 18:
		w.str(a.path)
		w.i32(int32(a.num("kind", 3)))
	case 100:
		w.i32(0)
		w.str(a.vals["scheme"])
		w.str(a.vals["secret"])
	case 101:
		w.i64(a.num("zxid", 0))
		w.strs(a.list("data"))
		w.strs(a.list("exist"))
		w.strs(a.list("child"))
	case 105:
		w.i64(a.num("zxid", 0))
		for _, k := range []string{"data", "exist", "child", "persistent", "recursive"} {
			w.strs(a.list(k))
		}
	case 106:
		w.str(a.path)
		w.i32(int32(a.num("mode", 0)))
	}
	if cut := int(a.num("cut", 0)); cut > 0 {
		w.b = w.b[:len(w.b)-cut]
	}
	return w.b
}
