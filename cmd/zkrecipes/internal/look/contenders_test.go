package look

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestTableIsDrawnInPlace: it replaces the previous output, only after a change, and never
// exceeds the terminal.
func TestTableIsDrawnInPlace(t *testing.T) {
	var terminal strings.Builder
	s := &screen{w: &terminal, columns: 10, rows: 4}
	for _, step := range []struct{ text, want string }{
		{"a\nb\n", "a\nb\n"},
		{"a\nb\n", ""},
		{"c\n", "\x1b[2A\x1b[Jc\n"},
		{"0123456789abc\n", "\x1b[1A\x1b[J012345678\n"},
		{"1\n2\n3\n4\n5\n", "\x1b[1A\x1b[J1\n2\n... and 3\n"},
		{"1\n2\n3\n", "\x1b[3A\x1b[J1\n2\n3\n"},
	} {
		terminal.Reset()
		if err := s.draw(func(w io.Writer) { fmt.Fprint(w, step.text) }); err != nil || terminal.String() != step.want {
			t.Errorf("%q is drawn as %q, want %q (%v)", step.text, terminal.String(), step.want, err)
		}
	}
}

// TestWaitQueueChanges: a contender waits, is granted under another name, is asked, and leaves.
func TestWaitQueueChanges(t *testing.T) {
	waits := recipes.Contender{Kind: recipes.KindPriorityLock, Mode: recipes.Writing, Znode: "/p/_c_g-write-50-1", SessionID: 1, Data: []byte("a b")}
	holds := waits
	holds.Znode, holds.Holds = "/p/_c_g-writing-50-2", true
	asked := holds
	asked.Revoked = true
	other := recipes.Contender{Kind: recipes.KindLock, Znode: "/p/_c_h-lock-3", SessionID: 2, Data: []byte("line\nfeed")}
	for _, tt := range []struct {
		before, now []recipes.Contender
		want        []string
	}{
		{nil, []recipes.Contender{waits}, []string{"waits priority-write:0 0x1 a b"}},
		{[]recipes.Contender{waits}, []recipes.Contender{waits}, nil},
		{[]recipes.Contender{waits}, []recipes.Contender{holds}, []string{"holds priority-write:0 0x1 a b"}},
		{[]recipes.Contender{holds}, []recipes.Contender{asked}, []string{"holds priority-write:0,asked 0x1 a b"}},
		{[]recipes.Contender{asked}, []recipes.Contender{other}, []string{"left priority-write:0,asked 0x1 a b", `waits lock 0x2 "line\nfeed"`}},
	} {
		var got []string
		for _, c := range lineChanges(tt.before, tt.now) {
			got = append(got, c.text())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
