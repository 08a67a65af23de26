package server

import "testing"

// TestFirstHostAttachesAndLastOneOrphans: those who come later change nothing.
func TestFirstHostAttachesAndLastOneOrphans(t *testing.T) {
	s := New(Config{})
	for i, step := range []struct {
		do                 func()
		attached, orphaned bool
	}{
		{func() {}, false, false},
		{s.arrive, true, false},
		{s.arrive, true, false},
		{s.depart, true, false},
		{s.depart, true, true},
		{s.arrive, true, true},
		{s.depart, true, true},
	} {
		step.do()
		if attached, orphaned := closed(s.Attached()), closed(s.Orphaned()); attached != step.attached || orphaned != step.orphaned {
			t.Errorf("step %d: attached %v, orphaned %v; want %v, %v", i, attached, orphaned, step.attached, step.orphaned)
		}
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
