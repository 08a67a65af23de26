package host

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// TestClosedStdoutReadsAsEOF: go-plugin logs any other error.
func TestClosedStdoutReadsAsEOF(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // a child of the process may keep it open
	must.Do(t, r.Close())
	if _, err := (recorded{r, &hello{}}).Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
}

// TestVersionOfAHandshake: a line that only resembles go-plugin's handshake has no version.
func TestVersionOfAHandshake(t *testing.T) {
	for line, want := range map[string]int{
		"1|7|unix|/s|grpc|x\nmore": 7, "1|7|unix|/s|grpc": 7, "2|7|unix|/s|grpc": 0, "1|7|unix|/s": 0, "1|x|unix|/s|grpc": 0, "": 0,
	} {
		var h hello
		h.add([]byte(line))
		if v, ok := h.version(); v != want || ok != (want != 0) {
			t.Errorf("%q has version %d, %v; want %d", line, v, ok, want)
		}
	}
}

// FuzzStderr checks that go-plugin's parser accepts the output of sanitise. The parser panics
// unless three entries of a JSON object are strings.
func FuzzStderr(f *testing.F) {
	f.Add([]byte("plain\n" + `{"@level":"info","@message":"x"}` + "\n"))
	f.Add([]byte(`{"@level":1}` + "\n" + `{"@message":null}` + "\r\n" + `  {"@timestamp":[]}`))
	f.Add([]byte(`{"@level":2,"x":"` + strings.Repeat("y", maxLine) + `"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		var last tail
		if err := sanitise(&out, bytes.NewReader(in), &last); err != io.EOF {
			t.Fatal(err)
		}
		if n := strings.Count(last.String(), "\n"); n >= tailLines || len(last.String()) > tailBytes {
			t.Errorf("the tail has %d lines, %d bytes", n, len(last.String()))
		}
		for line := range bytes.Lines(out.Bytes()) {
			if len(line) > logBuffer {
				t.Errorf("a line of %d bytes", len(line))
			}
			var entry map[string]any
			if json.Unmarshal(line, &entry) != nil {
				continue
			}
			for _, key := range []string{"@message", "@level", "@timestamp"} {
				if v, ok := entry[key]; ok {
					_ = v.(string)
				}
			}
		}
	})
}
