package zkserver_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestSequenceWraps(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		c.ok(t, "create", "/p")
		must.Do(t, s.SetSequence("/p", 2147483647))
		for _, want := range []string{"/p/n-2147483647", "/p/n--2147483648", "/p/n--2147483647"} {
			c.ok(t, "create", "/p/n-", "flags=s")
			if !exists(s, want) {
				t.Errorf("no %s", want)
			}
		}
		must.Do(t, s.SetSequence("/p", -5))
		c.ok(t, "create", "/p/n-", "flags=s")
		if !exists(s, "/p/n--000000005") {
			t.Error("a negative number is not padded as in Java")
		}
		if s.SetSequence("/nope", 1) == nil {
			t.Error("no error for a missing node")
		}
	})
}

func TestReapingOnDemand(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		for _, r := range [][]string{
			{"createContainer", "/unused", "flags=c"}, {"createContainer", "/used", "flags=c"},
			{"create", "/used/x"}, {"delete", "/used/x"},
			{"createTTL", "/ttl", "flags=t", "ttl=50"},
		} {
			c.ok(t, r[0], r[1:]...)
		}
		time.Sleep(51 * time.Millisecond)
		if !exists(s, "/ttl") || !exists(s, "/used") {
			t.Fatal("reaped before the interval")
		}
		s.RunContainerCheck()
		if exists(s, "/ttl") || exists(s, "/used") || !exists(s, "/unused") {
			t.Errorf("after the check: %v", s.Tree())
		}
	})
}
