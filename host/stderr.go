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
	// maxLine bounds a line of stderr that is passed on, in bytes. It must fit into
	// go-plugin's buffer: go-plugin loses the level of a longer line.
	maxLine = 64 << 10
	// logBuffer is the size of go-plugin's buffer: a line and a prefix.
	logBuffer = maxLine + 4<<10
	// tailLines and tailBytes bound the lines that are kept for the error of a failed
	// start.
	tailLines = 20
	tailBytes = 4 << 10
)

// plain is the prefix of a line that go-plugin must not parse as a log entry.
const plain = "stderr: "

// sanitise copies the lines of a plugin's stderr to w, and their beginnings to t. It returns
// when r ends. go-plugin's parser panics if @message, @level or @timestamp of a JSON line is
// not a string. sanitise turns such a line into plain text. It cuts a line that is too long,
// and turns it into plain text too.
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
		for tooLong { // skip the rest of it
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
		return true // go-plugin treats it as text
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

// tail keeps the last lines of stderr.
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
