package printable_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		`a "b" c:\d é 漢字 e\u0301`: `a "b" c:\d é 漢字 e\u0301`,
		"\x1bc\x1bPx\x1b\\":       `\x1bc\x1bPx\x1b\`,
		"\u009b2J":                `\u009b2J`,
		"\x9b2J":                  `\x9b2J`,
		"a\r\x00\x7f":             `a\r\x00\x7f`,
		"\u202e\u2066\u2028\u2029\u200f\u00a0\ufeff": `\u202e\u2066\u2028\u2029\u200f\u00a0\ufeff`,
		"\U000e0001":   `\U000e0001`,
		"\xe6\xbc":     `\xe6\xbc`,
		"\xed\xa0\x80": `\xed\xa0\x80`, // a surrogate
		"\ufffd":       "\ufffd",
	} {
		if got := printable.Line(text); got != want || printable.Text(text) != want || printable.Is(text) != (text == want) {
			t.Errorf("%q: %q; printable: %t", text, got, printable.Is(text))
		}
	}
	if line, text := printable.Line("a\n\tb\v"), printable.Text("a\n\tb\v"); line != `a\n\tb\v` || text != "a\n\tb"+`\v` {
		t.Errorf("%q, %q", line, text)
	}
}

// TestJSONHasTheSameValues: it contains no character that a terminal acts upon.
func TestJSONHasTheSameValues(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	text := printable.JSON(string(must.Get(json.MarshalIndent(map[string]string{all.String(): "v"}, "", "\t"))(t)))
	var got map[string]string
	must.Do(t, json.Unmarshal([]byte(text), &got))
	if got[all.String()] != "v" {
		t.Error("another value")
	}
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Fatalf("%U in the text", r)
		}
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	w := printable.Writer(&b, printable.Text)
	for _, part := range []string{"\x1b", "a\n"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	if b.String() != `\x1ba`+"\n" {
		t.Errorf("%q", b.String())
	}
	full := errors.New("full")
	w = printable.Writer(failing{full}, printable.Text)
	if n, err := w.Write([]byte("a")); n != 0 || !errors.Is(err, full) {
		t.Error(n, err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

func FuzzLine(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		line := printable.Line(text)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || printable.Line(line) != line {
			t.Errorf("%q becomes %q", text, line)
		}
		if keep := printable.Text(text); strings.Count(keep, "\n") != strings.Count(text, "\n") || printable.Line(keep) != line {
			t.Errorf("%q becomes %q", text, keep)
		}
	})
}

func TestMain(m *testing.M) { leaktest.Main(m) }
