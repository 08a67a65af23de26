package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"

	"golang.org/x/term"
)

// inJSON is how bytes that somebody stored are shown in JSON: as text where they
// are text, and otherwise in base64, in a field of its own.
func inJSON(stored []byte) (text string, base64 []byte) {
	if utf8.Valid(stored) {
		return string(stored), nil
	}
	return "", stored
}

// asStored is what is written of stored bytes. What is written to a file, or
// taken by another program, is what was stored; a terminal gets a line.
func asStored(w io.Writer, stored []byte) []byte {
	if terminal(w) && !bytes.HasSuffix(stored, []byte{'\n'}) {
		return append(bytes.Clone(stored), '\n')
	}
	return stored
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// most bounds what is read from stdin; no ZooKeeper takes that much.
const most = 16 << 20

// onOneLine shows bytes on one line, all of them, quoted where they would not be
// one or would move a terminal's cursor.
func onOneLine(stored []byte) string {
	text := string(stored)
	quoted := strconv.Quote(text)
	if text == "" || text == quoted[1:len(quoted)-1] {
		return text
	}
	return quoted
}

// readAll reads what is to be stored. An empty stdin is data, one that is closed is
// a mistake.
func readAll(f *os.File) ([]byte, error) {
	if closed(f) {
		return nil, usage("stdin is closed, and there is nothing to read; nothing was done (</dev/null is an empty stdin)")
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(data) > most:
		return nil, usage("more than %d bytes on stdin: ZooKeeper stores small things", most)
	}
	return data, nil
}
