package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

func TestSequenceWraps(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		code, err := c.do("create", "/p")
		wantOK(t, code, err)
		if err := s.SetSequence("/p", 2147483647); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"/p/n-2147483647", "/p/n--2147483648", "/p/n--2147483647"} {
			code, err := c.do("create", "/p/n-", "flags=s")
			wantOK(t, code, err)
			if !exists(s, want) {
				t.Errorf("no %s", want)
			}
		}
		if err := s.SetSequence("/p", -5); err != nil {
			t.Fatal(err)
		}
		code, err = c.do("create", "/p/n-", "flags=s")
		wantOK(t, code, err)
		if !exists(s, "/p/n--000000005") {
			t.Error("negative numbers are padded as in Java")
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
			code, err := c.do(r[0], r[1:]...)
			wantOK(t, code, err)
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

func TestTTLCanBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{DisableTTL: true})
		defer s.Close()
		c := connect(t, s, nil)
		if code, err := c.do("createTTL", "/ttl", "flags=t", "ttl=50"); code != -6 || err != nil {
			t.Errorf("got %s, %v", codeName(code), err)
		}
	})
}
