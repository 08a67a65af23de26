package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
)

const (
	// maxLine is the longest line of stderr that is passed on, in bytes.
	// go-plugin's buffer must hold it: of a longer line go-plugin loses the level.
	maxLine = 64 << 10
	// logBuffer is the size of go-plugin's buffer: a line and a prefix.
	logBuffer = maxLine + 4<<10
	// tailLines and tailBytes bound what is kept for the error of a failed
	// start.
	tailLines = 20
	tailBytes = 4 << 10
)

// plain is the prefix of a line that go-plugin must not take for a log entry.
const plain = "stderr: "

// sanitise copies the lines of a plugin's stderr, and their beginnings to the tail.
// go-plugin's parser panics at JSON in which @message, @level or @timestamp has a
// value of another type than string. Such a line becomes plain text. A line that is
// too long is cut and becomes plain text too. sanitise returns when r ends.
func sanitise(w io.Writer, r io.Reader, t *tail) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			line = bytes.TrimRight(line, "\r\n")
			t.add(line)
			if werr := writeLine(w, line, tooLong || !safe(line)); werr != nil {
				return werr
			}
		}
		for tooLong { // the rest of it
			_, err = lines.ReadSlice('\n')
			tooLong = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return err
		}
	}
}

func writeLine(w io.Writer, line []byte, escape bool) error {
	out := make([]byte, 0, len(plain)+len(line)+1)
	if escape {
		out = append(out, plain...)
	}
	out = append(out, line...)
	_, err := w.Write(append(out, '\n'))
	return err
}

// safe reports whether go-plugin can parse a line.
func safe(line []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		return true // not an object
	}
	var entry map[string]any
	if json.Unmarshal(line, &entry) != nil {
		return true // go-plugin takes it for text
	}
	for _, key := range []string{"@message", "@level", "@timestamp"} {
		if v, ok := entry[key]; ok {
			if _, ok := v.(string); !ok {
				return false
			}
		}
	}
	return true
}

// tail keeps the last lines.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line []byte) {
	if len(line) > tailBytes/4 {
		line = line[:tailBytes/4]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, strings.ToValidUTF8(string(line), "\uFFFD"))
	if len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
}

// String returns the last lines, at most tailBytes of them.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	size, first := 0, len(t.lines)
	for first > 0 && size+len(t.lines[first-1]) < tailBytes {
		first--
		size += len(t.lines[first]) + 1
	}
	return strings.Join(t.lines[first:], "\n")
}
