package txnlog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy/xerial"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/logtest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// read returns the changes of all records, and the error that ends the log, or nil.
func read(file []byte) (all [][]txnlog.Change, err error) {
	log, _, err := txnlog.Open(bytes.NewReader(file))
	if err != nil || log == nil {
		return nil, err
	}
	for {
		err := log.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		changes, err := log.Changes(nil)
		if err != nil {
			return all, err
		}
		for i := range changes { // changes are valid only until the next record is read
			changes[i].Path = bytes.Clone(changes[i].Path)
		}
		all = append(all, changes)
	}
}

var (
	create  = txnlog.Change{Type: txnlog.Create, Path: []byte("/a"), Data: []byte("d"), Ephemeral: true}
	set     = txnlog.Change{Type: txnlog.SetData, Path: []byte("/a"), Data: []byte{}, Version: 3}
	deletes = txnlog.Change{Type: txnlog.Delete, Path: []byte("/a")}
	failed  = txnlog.Change{Type: txnlog.Error}
)

func TestATransactionHasItsChanges(t *testing.T) {
	closes := txnlog.Change{Type: txnlog.CloseSession, Deleted: [][]byte{[]byte("/a"), []byte("/b")}}
	log := logtest.NewLog(7)
	log.Txn(1, 1, create)
	log.Txn(1, 2)
	log.Txn(1, 3, set, deletes)
	log.Txn(1, 4, deletes, failed) // the first operation is not applied either
	log.Txn(1, 0, closes)
	want := [][]txnlog.Change{{create}, nil, {set, deletes}, {}, {closes}}
	if got, err := read(log.Bytes); err != nil || len(got) != len(want) || !reflect.DeepEqual(got[2], want[2]) || len(got[3]) > 0 ||
		!reflect.DeepEqual(got[0], want[0]) || !reflect.DeepEqual(got[4], want[4]) || len(got[1]) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Servers before 3.6 log no paths at the end of a session. Later ones can be configured so, and
// still log a digest.
func TestTheEndOfASessionWithoutPaths(t *testing.T) {
	log := logtest.NewLog(0)
	log.Record(txnlog.Header{Type: txnlog.CloseSession}, nil) // followed by a digest
	got := must.Get(read(log.Bytes))(t)
	if len(got) != 1 || len(got[0]) != 1 || got[0][0].Deleted != nil {
		t.Errorf("%+v", got)
	}
}

// The version follows the access control list, of which one entry could be mistaken for it.
func TestAChangeOfTheACL(t *testing.T) {
	var body jute.Encoder
	body.Buffer([]byte("/a"))
	body.ACLs(jute.ACL{Perms: 1, Scheme: "world", ID: "anyone"}, jute.ACL{Perms: 31, Scheme: "digest", ID: "a:b"})
	body.Int32(7)
	log := logtest.NewLog(0)
	log.Record(txnlog.Header{Type: txnlog.SetACL}, body.Bytes)
	want := [][]txnlog.Change{{{Type: txnlog.SetACL, Path: []byte("/a"), Version: 7}}}
	if got, err := read(log.Bytes); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A server allocates its log in advance. If a log ends before the zeros, or with the file, at
// most its last record is torn.
func TestALogEndsWithZerosOrWithATornRecord(t *testing.T) {
	log := logtest.NewLog(0)
	log.Txn(1, 1, create)
	first := len(log.Bytes)
	log.Txn(1, 2, set)
	for _, zeros := range []int{0, 1, 11, 12, 13, 100_000} {
		padding := make([]byte, zeros)
		if got, err := read(append(bytes.Clone(log.Bytes), padding...)); err != nil || len(got) != 2 {
			t.Errorf("%d zeros: %d records, %v", zeros, len(got), err)
		}
		for at := first + 1; at < len(log.Bytes); at++ {
			file := append(bytes.Clone(log.Bytes[:at]), padding...)
			got, err := read(file)
			whole := err == nil && bytes.Count(log.Bytes[first:at], []byte{0}) == at-first // a checksum begins with zeros
			if !whole && !errors.Is(err, txnlog.ErrTorn) || len(got) != 1 {
				t.Errorf("cut at %d, %d zeros: %d records, %v", at, zeros, len(got), err)
			}
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	log := logtest.NewLog(0)
	log.Txn(1, 1, create)
	for at := 16; at < len(log.Bytes); at++ {
		file := bytes.Clone(log.Bytes)
		file[at] ^= 4
		if _, err := read(file); !errors.Is(err, txnlog.ErrTorn) && !errors.Is(err, txnlog.ErrCorrupt) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	snapshot := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/a"), Data: []byte("d")})
	for at := 16; at < len(snapshot)-5; at++ { // what follows the checksum has no meaning
		file := bytes.Clone(snapshot)
		file[at] ^= 4
		if _, err := nodes(file); !errors.Is(err, txnlog.ErrTorn) && !errors.Is(err, txnlog.ErrCorrupt) {
			t.Errorf("byte %d of the snapshot: %v", at, err)
		}
		if _, err := nodes(snapshot[:at]); !errors.Is(err, txnlog.ErrTorn) {
			t.Errorf("a snapshot of %d bytes: %v", at, err)
		}
	}
	for name, body := range map[string][]byte{"an unknown type": {}, "fields that are missing": {0, 0, 0, 99, '/'}} {
		log := logtest.NewLog(0)
		kind := txnlog.Type(99)
		if len(body) > 0 {
			kind = txnlog.Delete
		}
		log.Record(txnlog.Header{Type: kind, Zxid: 0x77}, body)
		if _, err := read(log.Bytes); !errors.Is(err, txnlog.ErrCorrupt) || !strings.Contains(err.Error(), "0x77") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	for name, file := range map[string]string{
		"text": "clientPort=2181\ndataDir=/x\n", "a short file": "ZKLG", "a later version": "ZKLG\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if _, _, err := txnlog.Open(strings.NewReader(file)); !errors.Is(err, txnlog.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := txnlog.Open(strings.NewReader("")); err != io.EOF {
		t.Errorf("an empty file: %v", err)
	}
}

func nodes(file []byte) (found []string, err error) {
	_, s, err := txnlog.Open(bytes.NewReader(file))
	if err != nil || s == nil {
		return nil, err
	}
	err = s.Read(nil, func(n *txnlog.Node) { found = append(found, string(n.Path)+"="+string(n.Data)) })
	return found, err
}

// Blocks of Snappy have 32 KiB, so a large znode is in several.
func TestACompressedSnapshot(t *testing.T) {
	large := strings.Repeat("0123456789", 30_000)
	plain := logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/a"), Data: []byte(large)}, txnlog.Node{Path: []byte("/b")})
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	must.Get(w.Write(plain))(t)
	must.Do(t, w.Close())
	for name, file := range map[string][]byte{"plain": plain, "gzip": zipped.Bytes(), "snappy": xerial.Encode(nil, plain)} {
		if got, err := nodes(file); err != nil || strings.Join(got, " ") != "= /a="+large+" /b=" {
			t.Errorf("%s: %d znodes, %v", name, len(got), err)
		}
		if name == "snappy" {
			large := slices.Concat(file[:16], []byte{0x7f, 0xff, 0xff, 0xff}, file[20:])
			if _, err := nodes(large); !errors.Is(err, txnlog.ErrCorrupt) {
				t.Errorf("a block of 2 GiB: %v", err)
			}
		}
		if _, err := nodes(file[:len(file)/2]); !errors.Is(err, txnlog.ErrTorn) {
			t.Errorf("half of %s: %v", name, err)
		}
	}
}

// The decoder must neither panic nor return more than the file contains.
func FuzzOpen(f *testing.F) {
	log := logtest.NewLog(0)
	log.Txn(1, 1, create)
	log.Txn(1, 2, set, deletes)
	f.Add(log.Bytes)
	f.Add(logtest.Snapshot(1, 1000, txnlog.Node{Path: []byte("/a")}))
	f.Add(xerial.Encode(nil, logtest.Snapshot(1, 1000)))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = nodes(file)
		all, _ := read(file)
		for _, changes := range all {
			for _, c := range changes {
				if len(c.Path)+len(c.Data)+len(c.Deleted) > len(file) {
					t.Errorf("%d bytes became %+v", len(file), c)
				}
			}
		}
	})
}

// FuzzChanges decodes bodies, whose checksum FuzzOpen would rarely meet.
func FuzzChanges(f *testing.F) {
	e := jute.Encoder{}
	e.String("/x")
	e.Buffer([]byte("data"))
	e.ACLs(jute.ACL{Perms: 31, Scheme: "world", ID: "anyone"})
	e.Bool(true)
	for _, kind := range []txnlog.Type{txnlog.Create, txnlog.Multi, txnlog.CloseSession, txnlog.SetACL, txnlog.Check} {
		f.Add(int32(kind), e.Bytes)
	}
	f.Fuzz(func(t *testing.T, kind int32, body []byte) {
		log := logtest.NewLog(0)
		log.Record(txnlog.Header{Type: txnlog.Type(kind)}, body)
		all, _ := read(log.Bytes)
		for _, changes := range all {
			for _, c := range changes {
				if len(c.Path)+len(c.Data)+len(c.Deleted) > len(log.Bytes) {
					t.Errorf("%d bytes became %+v", len(body), c)
				}
			}
		}
	})
}

// TestANegativeZxidIsCorrupt: it is corrupt although the checksum is right, because no server
// writes one.
func TestANegativeZxidIsCorrupt(t *testing.T) {
	log := logtest.NewLog(0)
	log.Txn(1, 1, create)
	log.Record(txnlog.Header{Type: txnlog.Error, Zxid: -1}, nil)
	if got, err := read(log.Bytes); !errors.Is(err, txnlog.ErrCorrupt) || len(got) != 1 || !strings.Contains(err.Error(), "0xffffffffffffffff") {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// zeros is a compressed file: a beginning, and zeros after it.
func zeros(t *testing.T, beginning []byte, n int) []byte {
	var zipped bytes.Buffer
	w := must.Get(gzip.NewWriterLevel(&zipped, gzip.BestSpeed))(t)
	must.Get(w.Write(beginning))(t)
	zero := make([]byte, 1<<20)
	for ; n > 0; n -= len(zero) {
		must.Get(w.Write(zero))(t)
	}
	must.Do(t, w.Close())
	return zipped.Bytes()
}

// TestALengthInACompressedFileIsBounded: a small file does not fill the memory. The test counts
// allocated memory, not live memory, so the collector does not matter.
func TestALengthInACompressedFileIsBounded(t *testing.T) {
	const size = 256 << 20
	length := []byte{size >> 24, 0, 0, 0}
	log := slices.Concat(logtest.NewLog(0).Bytes, make([]byte, 7), []byte{1}, length)
	snapshot := slices.Concat(logtest.Snapshot(1, 1)[:16], make([]byte, 8), length) // no sessions, no lists; a path
	for name, file := range map[string][]byte{"a record": zeros(t, log, size), "a path": zeros(t, snapshot, size)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(file)
		if err == nil {
			_, err = nodes(file)
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, txnlog.ErrCorrupt) || !strings.Contains(err.Error(), "decompress the file first") {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > size/16 {
			t.Errorf("%s of %d bytes: allocated %d of %d", name, len(file), used, size)
		}
	}
	large := logtest.Snapshot(1, 1, txnlog.Node{Path: []byte("/a"), Data: make([]byte, 32<<20)})
	if got, err := nodes(zeros(t, large, 0)); err != nil || len(got) != 2 {
		t.Errorf("a znode of 32 MiB: %d znodes, %v", len(got), err)
	}
}
