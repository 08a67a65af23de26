package line

import (
	"fmt"
	"testing"
)

func TestBusyPathsAreRememberedWithinBounds(t *testing.T) {
	var c Busy
	for i := range 3 * maxBusy {
		path := fmt.Sprintf("/job/%d", i)
		c.note(path, true)
		if !c.at(path) || c.at("/other") {
			t.Fatalf("the last wait at %s is not remembered", path)
		}
	}
	if n := len(c.paths); n > maxBusy {
		t.Errorf("%d paths are remembered; the limit is %d", n, maxBusy)
	}
	c.note("/job/0", true)
	if c.note("/job/0", false); c.at("/job/0") {
		t.Error("a path without waiters is remembered")
	}
}
