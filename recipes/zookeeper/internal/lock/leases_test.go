package lock

import (
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

func TestTheNamesOfLeases(t *testing.T) {
	const guid = "0123456789abcdef0123456789abcdef"
	for _, tt := range []struct {
		dialect recipes.Dialect
		znode   string
		want    bool
	}{
		{recipes.Curator, "/s/leases/_c_x-lease-0000000001", true},
		{recipes.Curator, "/s/leases/_c_x-lock-0000000001", false},
		{recipes.Curator, "/s/locks/_c_x-lease-0000000001", false},
		{recipes.Curator, "/s/leases/" + guid, false},
		{recipes.Kazoo, "/s/" + guid, true},
		{recipes.Kazoo, "/s/x", false},
		{recipes.Kazoo, "/s/leases/" + guid, false},
		{recipes.Kazoo, "/s/_c_x-lease-0000000001", false},
	} {
		made := must.Get(line.NewRecipe(&line.Line{Path: "/s", Dialect: tt.dialect}, "semaphore", SemaphoreContenders, hold))(t)
		s := newLeased(&semaphore{Recipe: made})
		if got := s.isLease(tt.znode); got != tt.want {
			t.Errorf("%s: %s is a lease: %v", tt.dialect, tt.znode, got)
		}
	}
}

func TestThePermitsInTheDataOfAPath(t *testing.T) {
	for data, want := range map[string]int{
		"permits=3": 3, "permits=1": 1, "permits=0": 0, "permits=-1": 0, "permits=": 0, "permits=x": 0, "permits=3x": 0,
		"permits=99999999999999999999": 0, "3": 0, "": 0, "xpermits=3": 0,
	} {
		if got := Permits([]byte(data)); got != want {
			t.Errorf("%q has %d permits; want %d", data, got, want)
		}
	}
}
