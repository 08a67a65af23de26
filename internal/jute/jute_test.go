package jute_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestEncodedRecordsDecode(t *testing.T) {
	stat := jute.Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
	acls := []jute.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 1, Scheme: "digest", ID: "me:x"}}
	var e jute.Encoder
	e.MultiHeader(-5, 7)
	e.Int64(-1 << 62)
	e.Buffer(nil)
	e.Buffer([]byte{})
	e.Buffer([]byte("data"))
	e.String("/a")
	e.Strings()
	e.Strings("b", "")
	e.ACLs(acls...)
	e.Stat(stat)
	e.MultiEnd()

	d := jute.Decoder{Bytes: e.Bytes}
	if op, done, code := d.MultiHeader(); op != -5 || done || code != 7 {
		t.Errorf("header %d %t %d", op, done, code)
	}
	if v := d.Int64(); v != -1<<62 {
		t.Errorf("long %d", v)
	}
	if b := d.Buffer(); b != nil {
		t.Errorf("null buffer %q", b)
	}
	if b := d.Buffer(); b == nil || len(b) != 0 {
		t.Errorf("empty buffer %#v", b)
	}
	if b := d.Buffer(); string(b) != "data" {
		t.Errorf("buffer %q", b)
	}
	if s := d.String(); s != "/a" {
		t.Errorf("string %q", s)
	}
	if list := d.Strings(); list == nil || len(list) != 0 {
		t.Errorf("empty strings %#v", list)
	}
	if list := d.Strings(); !slices.Equal(list, []string{"b", ""}) {
		t.Errorf("strings %q", list)
	}
	if list := d.ACLs(); !slices.Equal(list, acls) {
		t.Errorf("ACLs %v", list)
	}
	if s := d.Stat(); s != stat {
		t.Errorf("stat %+v", s)
	}
	if op, done, code := d.MultiHeader(); op != -1 || !done || code != -1 {
		t.Errorf("end %d %t %d", op, done, code)
	}
	if d.Err != nil || len(d.Bytes) != 0 {
		t.Errorf("%v, and %d bytes are left", d.Err, len(d.Bytes))
	}
}

// go-zookeeper decodes by reflection, in the order of its Stat's fields.
func TestStatsHaveTheFieldsOfGoZookeeper(t *testing.T) {
	s := jute.Stat{Czxid: 1, Pzxid: 2}
	if got := zk.Stat(s); got.Czxid != 1 || got.Pzxid != 2 {
		t.Errorf("go-zookeeper decodes %+v", got)
	}
}

func TestNullDecodesAsNilOrEmpty(t *testing.T) {
	null := []byte{0xff, 0xff, 0xff, 0xff}
	d := jute.Decoder{Bytes: bytes.Repeat(null, 4)}
	if b, s, list, acls := d.Buffer(), d.String(), d.Strings(), d.ACLs(); b != nil || s != "" || list != nil || acls != nil || d.Err != nil {
		t.Errorf("%v %q %v %v: %v", b, s, list, acls, d.Err)
	}
}

func TestMalformedRecordsFailAndDecodeAsZero(t *testing.T) {
	for name, record := range map[string][]byte{
		"nothing":                 nil,
		"half a length":           {0, 0},
		"less than the length":    {0, 0, 0, 9, 'a'},
		"a negative length":       {0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0},
		"more elements than fit":  {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"an element that is half": {0, 0, 0, 1, 0, 0, 0, 9, 'a'},
	} {
		for kind, read := range map[string]func(*jute.Decoder) bool{
			"strings": func(d *jute.Decoder) bool { return d.Strings() == nil },
			"ACLs":    func(d *jute.Decoder) bool { return d.ACLs() == nil },
		} {
			d := jute.Decoder{Bytes: record}
			if zero := read(&d); !zero || d.Err != jute.ErrMalformed {
				t.Errorf("%s as %s: zero is %t, the error is %v", name, kind, zero, d.Err)
			}
			if d.Int64() != 0 || d.Int32() != 0 || d.Bool() || d.String() != "" || d.Buffer() != nil || d.Strings() != nil || d.Stat() != (jute.Stat{}) {
				t.Errorf("%s as %s: a read after the error is not zero", name, kind)
			}
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
