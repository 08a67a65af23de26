package txnlog

import (
	"encoding/binary"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Type is the type of a transaction, and of a change in one. The values are ZooKeeper's.
type Type int32

const (
	Error           Type = -1 // a request that has failed
	CreateSession   Type = -10
	CloseSession    Type = -11
	Create          Type = 1
	Delete          Type = 2
	SetData         Type = 5
	SetACL          Type = 7
	Check           Type = 13
	Multi           Type = 14
	Create2         Type = 15
	Reconfig        Type = 16
	CreateContainer Type = 19
	DeleteContainer Type = 20
	CreateTTL       Type = 21
)

// Change is one change of a transaction. Its slices are valid until the next record is read.
type Change struct {
	// Type is Create for every kind of creation, and Delete for every kind of deletion. SetData
	// includes Reconfig. It is never Multi or Error.
	Type      Type
	Path      []byte
	Data      []byte   // of Create and SetData; nil for null
	Version   int32    // of SetData, SetACL and Check; SetData has the new one
	Ephemeral bool     // of Create: the znode belongs to the session of the header
	Timeout   int32    // of CreateSession, in milliseconds
	Deleted   [][]byte // of CloseSession: the session's znodes, if the server logs them (since 3.6)
}

// Changes decodes the record that Next has read. A transaction of several operations has several
// changes. A failed request has none. The error matches ErrCorrupt.
func (l *Log) Changes(to []Change) ([]Change, error) {
	d := jute.Decoder{Bytes: l.body}
	if l.header.Type == Multi {
		return multi(&d, to, l.header.Zxid)
	}
	return change(&d, l.header.Type, to, l.header.Zxid)
}

// multi decodes a MultiTxn: the type and the record of each operation. If one has failed, ZooKeeper
// applies none, but those before it keep their type in the log.
func multi(d *jute.Decoder, to []Change, zxid int64) ([]Change, error) {
	before, refused := len(to), false
	for range d.Int32() {
		kind := Type(d.Int32())
		part := jute.Decoder{Bytes: d.Buffer(), Err: d.Err}
		refused = refused || kind == Error
		var err error
		if to, err = change(&part, kind, to, zxid); err != nil {
			return to[:before], err
		}
	}
	if refused {
		to = to[:before]
	}
	return to, failed(d, Multi, zxid)
}

// change decodes one record and appends it. What follows the fields is ignored: the access
// control list, the version of the parent, and the digest of the tree that servers since 3.6
// append.
func change(d *jute.Decoder, kind Type, to []Change, zxid int64) ([]Change, error) {
	c := Change{Type: kind}
	switch kind {
	case Error:
		return to, nil
	case Create, Create2, CreateContainer, CreateTTL:
		c.Type = Create
		c.Path, c.Data = d.Buffer(), d.Buffer()
		if kind == Create || kind == Create2 {
			skipACLs(d)
			c.Ephemeral = d.Bool()
		}
	case Delete, DeleteContainer:
		c.Type, c.Path = Delete, d.Buffer()
	case SetData, Reconfig:
		c.Type, c.Path, c.Data, c.Version = SetData, d.Buffer(), d.Buffer(), d.Int32()
	case SetACL:
		c.Path = d.Buffer()
		skipACLs(d)
		c.Version = d.Int32()
	case Check:
		c.Path, c.Version = d.Buffer(), d.Int32()
	case CreateSession:
		c.Timeout = d.Int32()
	case CloseSession:
		c.Deleted = deleted(d.Bytes)
	default:
		return to, fmt.Errorf("%w: a transaction of unknown type %d (zxid 0x%x)", ErrCorrupt, kind, zxid)
	}
	return append(to, c), failed(d, kind, zxid)
}

func failed(d *jute.Decoder, kind Type, zxid int64) error {
	if d.Err != nil {
		return fmt.Errorf("%w: a transaction of type %d (zxid 0x%x) is shorter than its fields", ErrCorrupt, kind, zxid)
	}
	return nil
}

// skipACLs skips a list without allocating.
func skipACLs(d *jute.Decoder) {
	for n := d.Int32(); n > 0 && d.Err == nil; n-- {
		d.Int32()
		d.Buffer()
		d.Buffer()
	}
}

// digestVersion begins the digest that servers since 3.6 append to a transaction.
const digestVersion = 2

// deleted decodes the paths of a CloseSessionTxn. Servers before 3.6, and later ones with
// zookeeper.closeSessionTxn.enabled=false, log none. Then nothing follows the header, or only a
// digest, which could be mistaken for two empty paths.
func deleted(body []byte) (paths [][]byte) {
	const digest = 12
	if len(body) < 4 || len(body) == digest && binary.BigEndian.Uint32(body) == digestVersion {
		return nil
	}
	d := jute.Decoder{Bytes: body}
	for range d.Int32() {
		path := d.Buffer()
		if d.Err != nil {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}
