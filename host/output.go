package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
)

// ErrVersion is returned by Launch when the plugin and this host have no protocol version
// in common. Install a plugin or a host of a matching version.
var ErrVersion = errors.New("plugin of another protocol version")

func supported(version int) bool {
	_, ok := handshake.Host()[version]
	return ok
}

// hello is the first line of a plugin's stdout, its part of the handshake. go-plugin reports a
// version mismatch only as text.
type hello struct {
	mu   sync.Mutex
	line []byte
}

// mostHello bounds the line, in bytes. Most of it is a certificate.
const mostHello = 16 << 10

func (h *hello) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = append(h.line, b[:min(len(b), mostHello-len(h.line))]...)
}

// version returns the protocol version of the handshake, if there was a handshake:
// "1|<version>|<network>|<address>|grpc|...".
func (h *hello) version() (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := bytes.Cut(h.line, []byte("\n"))
	fields := strings.Split(string(line), "|")
	if len(fields) < 5 || fields[0] != "1" {
		return 0, false
	}
	v, err := strconv.Atoi(fields[1])
	return v, err == nil
}

// recorded copies what go-plugin reads of stdout to hello. The host closes the pipe when
// the process has exited, because the process's children may keep it open. go-plugin would
// log that as an error, so Read returns io.EOF instead.
type recorded struct {
	io.ReadCloser
	hello *hello
}

func (o recorded) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	o.hello.add(b[:n])
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

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
