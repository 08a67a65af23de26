package line

import (
	"fmt"
	"testing"
)

func TestCrowdsAreRememberedWithinBounds(t *testing.T) {
	var c Crowds
	for i := range 3 * maxCrowds {
		path := fmt.Sprintf("/job/%d", i)
		c.note(path, true)
		if !c.at(path) || c.at("/other") {
			t.Fatalf("not what was last met at %s", path)
		}
	}
	if n := len(c.paths); n > maxCrowds {
		t.Errorf("%d paths are remembered, of %d at most", n, maxCrowds)
	}
	c.note("/job/0", true)
	if c.note("/job/0", false); c.at("/job/0") {
		t.Error("a crowd that has gone is remembered")
	}
}
