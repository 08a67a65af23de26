// Package logtest writes ZooKeeper's transaction logs and snapshots for tests, in the formats of
// 3.8. Tests in package txnlog check that it reads the files of real servers too.
package logtest

import (
	"hash/adler32"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// Log is a transaction log in memory. Txn numbers its records from Zxid on.
type Log struct {
	jute.Encoder
	Zxid int64 // of the last record
	Time int64 // of the next record, in milliseconds since 1970
}

// NewLog returns a log without records, which continues after that zxid.
func NewLog(zxid int64) *Log {
	l := &Log{Zxid: zxid, Time: 1_700_000_000_000}
	l.Bytes = append(l.Bytes, "ZKLG"...)
	l.Int32(2)
	l.Int64(0)
	return l
}

// Txn appends a transaction of these changes, a multi if there are several, and returns its zxid.
// Without changes it is a failed request.
func (l *Log) Txn(session int64, cxid int32, changes ...txnlog.Change) int64 {
	l.Zxid++
	var body jute.Encoder
	kind := txnlog.Multi
	switch len(changes) {
	case 0:
		kind = txnlog.Error
		body.Int32(-101)
	case 1:
		kind = changes[0].Type
		put(&body, changes[0])
	default:
		body.Int32(int32(len(changes)))
		for _, c := range changes {
			var part jute.Encoder
			put(&part, c)
			body.Int32(int32(c.Type))
			body.Buffer(part.Bytes)
		}
	}
	l.Record(txnlog.Header{Session: session, Cxid: cxid, Zxid: l.Zxid, Time: l.Time, Type: kind}, body.Bytes)
	return l.Zxid
}

// Record appends a record with any body.
func (l *Log) Record(h txnlog.Header, body []byte) {
	var e jute.Encoder
	e.Int64(h.Session)
	e.Int32(h.Cxid)
	e.Int64(h.Zxid)
	e.Int64(h.Time)
	e.Int32(int32(h.Type))
	e.Bytes = append(e.Bytes, body...)
	e.Int32(2) // the version of the digest of 3.6
	e.Int64(0)
	l.Int64(int64(adler32.Checksum(e.Bytes)))
	l.Buffer(e.Bytes)
	l.Bytes = append(l.Bytes, 'B')
}

func put(e *jute.Encoder, c txnlog.Change) {
	switch c.Type {
	case txnlog.Create:
		e.Buffer(c.Path)
		e.Buffer(c.Data)
		e.ACLs(jute.ACL{Perms: 31, Scheme: "world", ID: "anyone"})
		e.Bool(c.Ephemeral)
		e.Int32(1)
	case txnlog.Delete:
		e.Buffer(c.Path)
	case txnlog.SetData:
		e.Buffer(c.Path)
		e.Buffer(c.Data)
		e.Int32(c.Version)
	case txnlog.Check:
		e.Buffer(c.Path)
		e.Int32(c.Version)
	case txnlog.CreateSession:
		e.Int32(c.Timeout)
	case txnlog.CloseSession:
		e.Int32(int32(len(c.Deleted)))
		for _, path := range c.Deleted {
			e.Buffer(path)
		}
	case txnlog.Error:
		e.Int32(-110)
	}
}

// Snapshot returns a snapshot of these znodes, with one session.
func Snapshot(session int64, timeout int32, nodes ...txnlog.Node) []byte {
	var e jute.Encoder
	e.Bytes = append(e.Bytes, "ZKSN"...)
	e.Int32(2)
	e.Int64(-1)
	e.Int32(1)
	e.Int64(session)
	e.Int32(timeout)
	e.Int32(1)
	e.Int64(1)
	e.ACLs(jute.ACL{Perms: 31, Scheme: "world", ID: "anyone"})
	for _, n := range append([]txnlog.Node{{}}, nodes...) {
		e.Buffer(n.Path)
		e.Buffer(n.Data)
		e.Int64(1)
		for _, v := range []int64{n.Czxid, n.Mzxid, n.Ctime, n.Mtime} {
			e.Int64(v)
		}
		e.Int32(n.Version)
		e.Int64(0) // the versions of children and access control list
		e.Int64(n.EphemeralOwner)
		e.Int64(n.Czxid)
	}
	e.String("/")
	e.Int64(int64(adler32.Checksum(e.Bytes)))
	e.String("/")
	return e.Bytes
}
