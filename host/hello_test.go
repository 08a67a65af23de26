package host

import (
	"io"
	"os"
	"testing"
)

// go-plugin logs an error if the reading of stdout ends with anything but EOF.
func TestStdoutThatIsClosedAfterTheProcessHasExitedHasEnded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // as a child of the process may hold it
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (recorded{r, &hello{}}).Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
}
