package rwlock

import (
	"bytes"
	"testing"
	"time"
)

func TestEnvelope(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want envelope
	}{
		{"", envelope{}},
		{"just data", envelope{data: []byte("just data")}},
		{"unlock", envelope{asked: true}},                    // an operator's hand
		{"unlock\n", envelope{asked: true}},                  // with echo
		{"unlocked", envelope{data: []byte("unlocked")}},     // not the word
		{"zkrecipes:", envelope{data: []byte("zkrecipes:")}}, // no line
		{"zkrecipes: revocable\n", envelope{revocable: true}},
		{"unlock\nzkrecipes: revocable grace=5000ms\nme\n", envelope{asked: true, revocable: true, grace: 5 * time.Second, data: []byte("me\n")}},
		{"zkrecipes: downgraded of-the-future\n", envelope{downgraded: true}},
		{"zkrecipes: grace=-1ms\n", envelope{}},
		{"zkrecipes: grace=99999999999999999ms\n", envelope{}},
		{"zkrecipes: grace=soon\n", envelope{}},
	} {
		got := decode([]byte(tt.raw))
		if !same(got, tt.want) {
			t.Errorf("%q is %+v; want %+v", tt.raw, got, tt.want)
		}
	}
	if raw := (envelope{data: []byte("me")}).encode(); string(raw) != "me" {
		t.Errorf("data without marks is stored as %q", raw)
	}
}

func same(a, b envelope) bool {
	return a.asked == b.asked && a.revocable == b.revocable && a.grace == b.grace && a.downgraded == b.downgraded && bytes.Equal(a.data, b.data)
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("unlock\nzkrecipes: revocable grace=5000ms\nme"), true, true, int64(5), false)
	f.Add([]byte("zkrecipes:\n"), false, false, int64(0), true)
	f.Fuzz(func(t *testing.T, data []byte, asked, revocable bool, ms int64, downgraded bool) {
		decode(data)
		e := envelope{asked, revocable, time.Duration(uint32(ms)) * time.Millisecond, downgraded, data}
		if got := decode(e.encode()); !same(got, e) {
			t.Fatalf("%+v became %+v", e, got)
		}
	})
}
