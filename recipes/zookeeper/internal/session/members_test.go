package session

import (
	"slices"
	"testing"
)

func TestTheMembersOfAnEnsemble(t *testing.T) {
	one, two := []string{"h:2181"}, []string{"h:2181", "i:2182"}
	for _, c := range []struct {
		config  string
		given   []string
		secured bool
		want    []string
	}{
		{"server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:observer;2182\nversion=100000000", two, false, []string{"zk1:2181", "zk2:2182"}},
		{"server.1=zk1:2888:3888:participant;10.0.0.1:2181", two, false, []string{"10.0.0.1:2181"}},
		{"server.1=[fd00::1]:2888:3888:participant;[::]:2181", two, false, []string{"[fd00::1]:2181"}},
		{"server.1=a:2888:3888|b:2888:3888;2181", two, false, []string{"a:2181", "b:2181"}},
		{"server.1=zk1:2888:3888", one, false, []string{"zk1:2181"}},
		{"server.1=zk1:2888:3888", two, false, nil},
		{"server.1=zk1:2888:3888;2181", []string{"h:2281"}, true, []string{"zk1:2281"}},
		{"", one, false, nil},
		{"server.1=\nserver.2=;\nserver.3=;:\ngarbage", one, false, nil},
	} {
		if got := members(c.config, c.given, c.secured); !slices.Equal(got, c.want) {
			t.Errorf("%q with %q: %q; want %q", c.config, c.given, got, c.want)
		}
	}
}
