package conn

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// A server's reply may be anything.
func FuzzReply(f *testing.F) {
	var e jute.Encoder
	e.MultiHeader(opSetData, 0)
	e.Bytes = append(e.Bytes, make([]byte, 68)...)
	e.MultiHeader(opDelete, 0)
	e.MultiEnd()
	f.Add(e.Bytes)
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x01b"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := Reply{body: body}
		if node, err := r.Node(); err == nil && len(node.Data) > len(body) {
			t.Fatalf("%d bytes of data from %d", len(node.Data), len(body))
		}
		_ = r.Refusal()
		if _, err := r.Stat(); (err == nil) != (len(body) >= 68) {
			t.Fatalf("a record of %d bytes: %v", len(body), err)
		}
		d := jute.Decoder{Bytes: body}
		if names := d.Strings(); d.Err == nil && 4*len(names) > len(body) {
			t.Fatalf("%d names from %d bytes", len(names), len(body))
		}
	})
}
