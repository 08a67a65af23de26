package session

import "testing"

// A server's reply may be anything.
func FuzzReply(f *testing.F) {
	var e encoder
	e.opHeader(opSetData, false, 0)
	e.b = append(e.b, make([]byte, 68)...)
	e.opHeader(opDelete, false, 0)
	e.opHeader(-1, true, -1)
	f.Add(e.b)
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x01b"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := reply{body: body}
		if node, err := r.node(); err == nil && len(node.Data) > len(body) {
			t.Fatalf("%d bytes of data from %d", len(node.Data), len(body))
		}
		_ = r.multi()
		_ = r.siblings(Place{})
		d := decoder{b: body}
		if names := d.strs(); d.err == nil && 4*len(names) > len(body) {
			t.Fatalf("%d names from %d bytes", len(names), len(body))
		}
		if data, ok := PlaceData(body); ok && len(data)+placeHeader != len(body) {
			t.Fatal("a place's data has another length")
		}
	})
}
