// Package printable makes text harmless for the terminal that may show it.
//
// Any client of ZooKeeper may create znodes with any data and nearly any name, and a server, a
// plugin or a file may contain anything. If a program prints such bytes as they are, they can move
// the cursor, hide or forge lines, change the title of the window or, in some terminals, type
// commands. So the programs print through these functions. They do it for files and pipes too: a
// terminal shows a log later.
//
// A character is printable if unicode.IsPrint says so: letters, marks, numbers, punctuation,
// symbols and the space. Others, such as ESC, the C1 controls, line separators and the controls of
// the direction of writing, become escapes of Go: \x1b, \u009b, \u2028, \u202e. Bytes that are not
// UTF-8 become escapes too: \xff. A backslash is not doubled, because the result is for people. A
// program that needs the exact bytes reads JSON.
package printable

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Is reports whether all of text is printable.
func Is(text string) bool { return Line(text) == text }

// Line returns text with escapes for what is not printable, including line breaks and tabs. So
// the text cannot look like two lines or two cells of a table.
func Line(text string) string { return escaped(text, "", inGo) }

// Text is Line, but keeps newlines and tabs, for text that has a layout.
func Text(text string) string { return escaped(text, "\n\t", inGo) }

// JSON returns a JSON text with the same values. Package encoding/json leaves DEL, the C1 controls
// and the controls of direction as they are.
func JSON(text string) string { return escaped(text, "\n\t", inJSON) }

// Writer returns a writer that passes on what a function such as Text returns for each write. A
// write must end with a whole character.
func Writer(w io.Writer, function func(string) string) io.Writer { return writer{w, function} }

// Below returns the writer for which Writer was called, or w itself. A program writes control
// sequences for the terminal there, such as those of a progress bar.
func Below(w io.Writer) io.Writer {
	if p, ok := w.(writer); ok {
		return p.Writer
	}
	return w
}

type writer struct {
	io.Writer
	function func(string) string
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, w.function(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped replaces each character that is neither printable nor in keep.
func escaped(text, keep string, replacement func(character string) string) string {
	var b strings.Builder
	for at, size := 0, 0; at < len(text); at += size {
		var r rune
		r, size = utf8.DecodeRuneInString(text[at:])
		character := text[at : at+size]
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) {
			character = replacement(character)
		}
		b.WriteString(character)
	}
	return b.String()
}

// inGo returns the escape of a character, or of a byte that is not UTF-8.
func inGo(character string) string {
	quoted := strconv.Quote(character)
	return quoted[1 : len(quoted)-1]
}

func inJSON(character string) string {
	escape := ""
	for _, unit := range utf16.Encode([]rune(character)) {
		escape += `\u` + strconv.FormatUint(0x10000+uint64(unit), 16)[1:]
	}
	return escape
}
