package session

import (
	"context"
	"errors"
	"testing"
)

// One call at a time creates a name. The next one starts when it has ended.
func TestOneCallAtATimeHasAName(t *testing.T) {
	var n names
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	release, err := n.take(t.Context(), "/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.take(ended, "/x"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second call: %v", err)
	}
	other, err := n.take(ended, "/y")
	if err != nil {
		t.Fatalf("another name: %v", err)
	}
	other()
	next := make(chan error, 1)
	go func() {
		release, err := n.take(t.Context(), "/x")
		if err == nil {
			release()
		}
		next <- err
	}()
	release()
	if err := <-next; err != nil {
		t.Error(err)
	}
	if len(n.busy) != 0 {
		t.Errorf("%d names are taken", len(n.busy))
	}
}
