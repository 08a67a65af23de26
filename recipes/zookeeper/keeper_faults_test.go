package zookeeper_test

import (
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The faults of TestEveryFaultAtEveryRequest on what is played as ClickHouse Keeper. There, a session
// ends with its connection, and no request is throttled.
func TestEveryFaultAtEveryRequestOnKeeper(t *testing.T) {
	var all []fault
	for _, f := range faults {
		if f.first.Throttle || f.then.Throttle {
			continue
		}
		if f.first.CloseBefore || f.first.CloseAfter || f.first.DropReply {
			f.ends = true
			f.may = append(slices.Clone(f.may), recipes.ErrSessionLost)
		}
		all = append(all, f)
	}
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			everyFault(t, func(t *testing.T, f func(*stage)) { setUp(t, like, false, f) }, all, 12)
		})
	}
}
