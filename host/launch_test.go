package host_test

import (
	"testing"
	"time"
)

func TestPluginIsLaunchedUsedAndClosed(t *testing.T) {
	p := launch(t, config(t, "plugin"))
	s := open(t, p, time.Minute)
	h := acquire(t, s)
	if h.Token() == 0 {
		t.Error("no token")
	}
	if err := h.Release(ctx(t)); err != nil {
		t.Error(err)
	}
	if err := s.Close(ctx(t)); err != nil {
		t.Error(err)
	}
	start := time.Now()
	if err := p.Close(ctx(t)); err != nil {
		t.Error(err)
	}
	t.Logf("Close took %v", time.Since(start))
	closes(t, "Exited", p.Exited())
}
