package server

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (resumedTransaction) Join(context.Context, string) (recipes.Site, error) {
	return joinedSite{}, nil
}

// A host that forgets to finish its sites does not fill the memory. A resumed site is not
// refused: the plugin in which it joined has counted it.
func TestSitesAreBounded(t *testing.T) {
	ss := &session{Client: cutting{breaks: func() {}}, resumption: newResumption(true)}
	ss.acquisitions = newAcquisitions(ss, 1)
	join := func(resumed string) (string, error) {
		_, membership, err := ss.join(t.Context(), resumedTransaction{c: ss.Client.(cutting)}, &pb.JoinTransactionRequest{Resumed: resumed})
		return membership, err
	}
	first := must.Get(join(""))(t)
	if _, err := join(""); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("a second site: %v", err)
	}
	if _, err := join("it"); err != nil {
		t.Errorf("a resumed site: %v", err)
	}
	ss.memberships.finish("it")
	ss.memberships.finish(first)
	if _, err := join(""); err != nil {
		t.Errorf("after the end of the others: %v", err)
	}
}

type leaving struct{ recipes.Passage }

func (leaving) Leave(ctx context.Context) error { return ctx.Err() }

// A member that is removed from a double barrier does not wait for the others.
func TestARemovedMemberDoesNotWait(t *testing.T) {
	if err := leaveAtOnce(leaving{})(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("it leaves with %v", err)
	}
}
