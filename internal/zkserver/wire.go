package zkserver

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Op is the type of a request, as in the request header.
type Op int32

// The request types that the server answers.
const (
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpCheckWatches    Op = 17
	OpRemoveWatches   Op = 18
	OpCreateContainer Op = 19
	OpCreateTTL       Op = 21
	OpMultiRead       Op = 22
	OpAuth            Op = 100
	OpSetWatches      Op = 101
	OpGetEphemerals   Op = 103
	OpCountChildren   Op = 104
	OpSetWatches2     Op = 105
	OpAddWatch        Op = 106
	OpWhoAmI          Op = 107
	OpCloseSession    Op = -11

	opError Op = -1 // the type of a failed result inside a multi reply
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren",
	OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check",
	OpMulti: "multi", OpCreate2: "create2", OpCheckWatches: "checkWatches",
	OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer",
	OpCreateTTL: "createTTL", OpMultiRead: "multiRead", OpAuth: "auth",
	OpSetWatches: "setWatches", OpGetEphemerals: "getEphemerals",
	OpCountChildren: "getAllChildrenNumber", OpSetWatches2: "setWatches2",
	OpAddWatch: "addWatch", OpWhoAmI: "whoAmI", OpCloseSession: "closeSession",
}

// String returns ZooKeeper's name of the request type, or its number.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// writes reports whether the request uses a transaction id.
func (o Op) writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData,
		OpSetACL, OpCheck, OpMulti, OpCloseSession:
		return true
	}
	return false
}

// code is the err field of a reply.
type code int32

const (
	codeOK                   code = 0
	codeRuntimeInconsistency code = -2
	codeMarshalling          code = -5
	codeUnimplemented        code = -6
	codeBadArguments         code = -8
	codeNoNode               code = -101
	codeNoAuth               code = -102
	codeBadVersion           code = -103
	codeNoChildrenForEph     code = -108
	codeNodeExists           code = -110
	codeNotEmpty             code = -111
	codeInvalidACL           code = -114
	codeAuthFailed           code = -115
	codeNoWatcher            code = -121
	codeThrottledOp          code = -127
)

// operation is the decoded body of a request. It has the fields of all request records. A
// multi has one operation for each of its parts.
type operation struct {
	op      Op
	path    string
	data    []byte
	acl     []ACL
	flags   int32
	ttl     int64 // -1 if the request has no such field
	version int32
	watch   bool
	kind    int32  // of watches, in checkWatches, removeWatches and addWatch
	scheme  string // of auth; data has the secret
	watches watchList
	parts   []operation
}

// watchList is what a client sends when it resumes its session.
type watchList struct {
	relativeZxid       int64
	data, exist, child []string

	persistent, recursive []string // of setWatches2 only
}

func decodeWatches(d *jute.Decoder) watchList {
	return watchList{relativeZxid: d.Int64(), data: d.Strings(), exist: d.Strings(), child: d.Strings()}
}

// decodeOperation reads the body of a request. On an error, ZooKeeper answers with
// MarshallingError. For an unknown request type it returns an operation without fields.
func decodeOperation(op Op, body []byte, p *profile) (operation, error) {
	d := &jute.Decoder{Bytes: body}
	o := operation{op: op, ttl: -1}
	switch op {
	case OpMulti, OpMultiRead:
		o.parts = decodeParts(d, op == OpMulti, p)
	case OpAuth:
		d.Int32()
		o.scheme, o.data = d.String(), d.Buffer()
	case OpSetWatches:
		o.watches = decodeWatches(d)
	case OpSetWatches2:
		o.watches = decodeWatches(d)
		o.watches.persistent, o.watches.recursive = d.Strings(), d.Strings()
	default:
		decodeSimple(d, &o, p.answers)
	}
	return o, d.Err
}

// decodeSimple reads the records that may also be parts of a multi.
func decodeSimple(d *jute.Decoder, o *operation, like Release) {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer:
		o.path, o.data, o.acl, o.flags = d.String(), d.Buffer(), d.ACLs(), d.Int32()
	case OpCreateTTL:
		o.path, o.data, o.acl, o.flags, o.ttl = d.String(), d.Buffer(), d.ACLs(), d.Int32(), d.Int64()
	case OpDelete, OpCheck:
		o.path, o.version = d.String(), d.Int32()
	case OpSetData:
		o.path, o.data, o.version = d.String(), d.Buffer(), d.Int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		o.path, o.watch = d.String(), d.Bool()
	case OpGetACL, OpSync, OpGetEphemerals, OpCountChildren:
		o.path = d.String()
	case OpSetACL:
		o.path, o.acl, o.version = d.String(), d.ACLs(), d.Int32()
	case OpCheckWatches, OpRemoveWatches, OpAddWatch:
		o.path, o.kind = d.String(), d.Int32()
	}
	if like == Release34 && o.acl == nil && (o.op == OpCreate || o.op == OpSetACL) {
		d.Fail() // in 3.4 a null access list is an exception
	}
}

// decodeParts reads pairs of header and record, up to the header that says done. All parts
// must be writes, or all reads, and the release must accept them.
func decodeParts(d *jute.Decoder, writes bool, p *profile) []operation {
	var parts []operation
	for {
		op, done, _ := d.MultiHeader() // only replies use the code
		part := operation{op: Op(op), ttl: -1}
		if done || d.Err != nil {
			return parts
		}
		if !slices.Contains(p.parts, part.op) || part.op.writes() != writes {
			d.Fail()
		}
		decodeSimple(d, &part, p.answers)
		if p.answers > Release34 && !p.keeper {
			part.asPart(d, p.answers)
		}
		parts = append(parts, part)
	}
}

// asPart changes a request as ZooKeeper does inside a multi. The flags decide the kind of
// create. Before 3.9, a create2 becomes a plain create. Reads set no watch.
func (o *operation) asPart(d *jute.Decoder, like Release) {
	o.watch = false
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
	default:
		return
	}
	ttl, isTTL := o.ttl, o.op == OpCreateTTL
	o.ttl = -1
	switch o.flags {
	case flagContainer:
		o.op = OpCreateContainer
	case flagTTL, flagTTLSeq:
		if !isTTL {
			d.Fail()
		}
		o.op, o.ttl = OpCreateTTL, ttl
	default:
		switch {
		case like < Release39 || isTTL:
			o.op = OpCreate
		case o.flags < 0 || o.flags > flagTTLSeq:
			d.Fail()
		}
	}
}

// connectRequest is the first packet of a connection.
type connectRequest struct {
	lastZxid  int64
	timeout   int32 // milliseconds
	sessionID int64
	password  []byte
	hasRO     bool // the client supports read-only mode and expects the field in the reply
}

func decodeConnect(body []byte) (connectRequest, error) {
	d := &jute.Decoder{Bytes: body}
	d.Int32() // protocol version: there is only one
	r := connectRequest{lastZxid: d.Int64(), timeout: d.Int32(), sessionID: d.Int64(), password: d.Buffer()}
	if err := d.Err; err != nil {
		return connectRequest{}, err
	}
	d.Bool()
	r.hasRO = d.Err == nil
	return r, nil
}

// A reply frame is: length, xid, zxid, err, body.
const frameHeader = 4 + 4 + 8 + 4

// newFrame starts a reply. The caller appends the body, and seal completes it.
func newFrame() *jute.Encoder {
	return &jute.Encoder{Bytes: make([]byte, frameHeader, frameHeader+96)}
}

// seal writes the header and returns the frame. With an error code it drops the body.
func seal(f *jute.Encoder, xid int32, zxid int64, c code) []byte {
	frame := f.Bytes
	if c != codeOK {
		frame = frame[:frameHeader]
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	binary.BigEndian.PutUint32(frame[4:], uint32(xid))
	binary.BigEndian.PutUint64(frame[8:], uint64(zxid))
	binary.BigEndian.PutUint32(frame[16:], uint32(c))
	return frame
}
