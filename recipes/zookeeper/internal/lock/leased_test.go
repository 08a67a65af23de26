package lock

import (
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
		made, err := line.NewRecipe(&line.Line{Path: "/s", Dialect: tt.dialect}, "semaphore", SemaphoreContenders, hold)
		if err != nil {
			t.Fatal(err)
		}
		s := newLeased(&semaphore{Recipe: made})
		if got := s.isLease(tt.znode); got != tt.want {
			t.Errorf("%s: %s is a lease: %v", tt.dialect, tt.znode, got)
		}
	}
}
