package leaktest

import (
	"os"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// go-zookeeper's Close can need that second.
func TestAGoroutineThatEndsWithinASecondIsNoLeak(t *testing.T) {
	others, begun := goleak.IgnoreCurrent(), time.Now()
	go func() { <-time.After(time.Second) }() // the subject of the test: it ends within a second
	if goleak.Find(others) == nil && time.Since(begun) < time.Second {
		t.Fatal("goleak alone waits long enough: package leaktest is not needed")
	}
	if err := find(rounds, others); err != nil {
		t.Fatal(err)
	}
}

func TestTheCollectorRunsLess(t *testing.T) {
	now := debug.SetGCPercent(400)
	debug.SetGCPercent(now)
	if set := os.Getenv("GOGC"); set == "" && now != 400 {
		t.Errorf("GOGC is %d", now)
	}
}

func TestAGoroutineThatStaysIsALeak(t *testing.T) {
	others := goleak.IgnoreCurrent()
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if find(2, others) == nil {
		t.Fatal("not found")
	}
}
