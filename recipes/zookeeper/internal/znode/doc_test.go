package znode

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestAnExcerptIsShort(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 40: 40, 41: 43, 1000: 43} {
		if got := Excerpt(strings.Repeat("x", n)); len(got) != want || strings.HasSuffix(got, "...") != (n > 40) {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

func TestTheOwnerOfAZnode(t *testing.T) {
	for owner, want := range map[int64]int64{
		0: 0, 42: 42, 0x1000000000000001: 0x1000000000000001,
		-1 << 63:               0, // a container
		-1 << 56:               0, // a time to live
		-1<<56 | 60000:         0,
		-2 << 56:               -2 << 56, // server 254
		0x7f00000000000000 | 7: 0x7f00000000000000 | 7,
	} {
		if got := OwnerOf(session.Stat{EphemeralOwner: owner}); got != want {
			t.Errorf("%#x: owner %#x; want %#x", owner, got, want)
		}
	}
}

func TestWhichOperationWasRefused(t *testing.T) {
	refused := &session.TxnError{Index: 3, Err: recipes.ErrNoNode}
	for _, test := range []struct {
		err    error
		want   int
		faster bool // another client was
	}{
		{nil, -1, false}, {recipes.ErrNoNode, -1, false}, {refused, 3, true}, {fmt.Errorf("wrapped: %w", refused), 3, true},
		{recipes.ErrBadVersion, -1, false}, {&session.TxnError{Err: recipes.ErrBadVersion}, 0, true},
		{&session.TxnError{Index: 1, Err: recipes.ErrNodeExists}, 1, false},
	} {
		if got, faster := RefusedOp(test.err), GoneOrChanged(test.err); got != test.want || faster != test.faster {
			t.Errorf("%v: %d, %v", test.err, got, faster)
		}
	}
	if err := UnknownOutcome(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
	unknown := UnknownOutcome(refused)
	if !errors.Is(unknown, recipes.ErrUnknownOutcome) || !errors.Is(unknown, recipes.ErrNoNode) {
		t.Error(unknown)
	}
	wrapped := fmt.Errorf("wrapped: %w", unknown)
	for _, err := range []error{unknown, wrapped} {
		if again := UnknownOutcome(err); again != err {
			t.Errorf("%q has the text twice", again)
		}
	}
}
