package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// The second is go-zookeeper's.
func TestAGoroutineThatEndsWithinASecondIsNoLeak(t *testing.T) {
	others := goleak.IgnoreCurrent()
	go func() { <-time.After(time.Second) }() // subject: it ends within a second
	if goleak.Find(others) == nil {
		t.Fatal("goleak alone waits as long: this package is not needed")
	}
	if err := find(rounds, others); err != nil {
		t.Fatal(err)
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
