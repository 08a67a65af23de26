package host

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

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
