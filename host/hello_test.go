package host

import (
	"io"
	"os"
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
