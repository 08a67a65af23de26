package rwlock

import (
	"bytes"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestDataOfAContender(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want nodeData
	}{
		{"", nodeData{}},
		{"just data", nodeData{data: []byte("just data")}},
		{"unlock", nodeData{revoked: true}},                  // written by an operator
		{"unlock\n", nodeData{revoked: true}},                // with echo
		{"unlocked", nodeData{data: []byte("unlocked")}},     // not the word
		{"zkrecipes:", nodeData{data: []byte("zkrecipes:")}}, // not a whole line
		{"zkrecipes:next revocable\n", nodeData{data: []byte("zkrecipes:next revocable\n")}},
		{" zkrecipes: revocable\n", nodeData{data: []byte(" zkrecipes: revocable\n")}},
		{"\n\n", nodeData{data: []byte("\n\n")}},
		{"zkrecipes:\nunlock", nodeData{data: []byte("unlock")}}, // the application's
		{"zkrecipes:\nzkrecipes: revocable\n", nodeData{data: []byte("zkrecipes: revocable\n")}},
		{"zkrecipes: revocable\n", nodeData{revocable: true}},
		{"unlock\nzkrecipes: revocable grace=5000ms\nme\n", nodeData{revoked: true, revocable: true, grace: 5 * time.Second, data: []byte("me\n")}},
		{"zkrecipes: downgraded of-the-future\n", nodeData{downgraded: true}},
		{"zkrecipes: grace=-1ms\n", nodeData{}},
		{"zkrecipes: grace=99999999999999999ms\n", nodeData{}},
		{"zkrecipes: grace=5\n", nodeData{}},
		{"zkrecipes: grace=ms\n", nodeData{}},
		{"zkrecipes: grace=99999999999999999999ms\n", nodeData{}}, // too large for 64 bits
		{"zkrecipes: grace=soon\n", nodeData{}},
	} {
		got := decode([]byte(tt.raw))
		if !same(got, tt.want) {
			t.Errorf("%q is %+v; want %+v", tt.raw, got, tt.want)
		}
		if again := decode(tt.want.encode()); !same(again, tt.want) {
			t.Errorf("%+v is %+v after it was stored as %q", tt.want, again, tt.want.encode())
		}
	}
	if raw := (nodeData{data: []byte("me")}).encode(); string(raw) != "me" {
		t.Errorf("data without marks is stored as %q", raw)
	}
}

// The name of a contender has its mode, and the data says whether a writer has downgraded.
func TestTheModeOfAContender(t *testing.T) {
	for name, mode := range map[string]recipes.Mode{
		"read-0000000001": recipes.Reading, "_c_1-__READ__0000000001": recipes.Reading, "1__rlock__0000000001": recipes.Reading,
		"write-0000000001": recipes.Writing, "_c_1-__WRIT__0000000001": recipes.Writing, "1__lock__0000000001": recipes.Writing,
	} {
		c, downgraded := recipes.Contender{Znode: "/l/" + name}, recipes.Contender{Znode: "/l/" + name, Data: nodeData{downgraded: true}.encode()}
		readMarks(&c)
		readMarks(&downgraded)
		if c.Mode != mode || downgraded.Mode != recipes.Reading || !downgraded.Downgraded {
			t.Errorf("%s is %s; want %s. Downgraded it is %+v", name, c.Mode, mode, downgraded)
		}
	}
}

func same(a, b nodeData) bool {
	return a.revoked == b.revoked && a.revocable == b.revocable && a.grace == b.grace && a.downgraded == b.downgraded && bytes.Equal(a.data, b.data)
}

func FuzzDataOfAContender(f *testing.F) {
	f.Add([]byte("unlock\nzkrecipes: revocable grace=5000ms\nme"), true, true, int64(5), false)
	f.Add([]byte("zkrecipes:\n"), false, false, int64(0), true)
	f.Fuzz(func(t *testing.T, data []byte, revoked, revocable bool, ms int64, downgraded bool) {
		decode(data)
		d := nodeData{revoked, revocable, time.Duration(uint32(ms)) * time.Millisecond, downgraded, data}
		if got := decode(d.encode()); !same(got, d) {
			t.Fatalf("%+v became %+v", d, got)
		}
	})
}
