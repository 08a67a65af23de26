package zktest

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// Movable has the methods of a session that move it to another process.
type Movable interface {
	recipes.Client
	ResumeTicket() []byte
	Detach(context.Context) error
	DropRest(context.Context) error
}

// Move detaches s and resumes its session as another process would.
func Move(t *testing.T, addr string, s recipes.Client) recipes.Client {
	t.Helper()
	must.Do(t, s.(Movable).Detach(Bounded(t)))
	next := must.Get(zookeeper.Resume(Bounded(t), config(addr), s.(Movable).ResumeTicket(), time.Now()))(t)
	closeAtEnd(t, next)
	return next
}

// Taker has the method of a recipe that resumes a grant.
type Taker[G recipes.Grant] interface {
	Resume(context.Context, string, recipes.Token) (G, error)
}

// GuardedWrite creates the path under the grant.
func GuardedWrite(t *testing.T, g recipes.Grant, path string) {
	t.Helper()
	if err := g.Write(Bounded(t), recipes.Create(path, nil)); err != nil {
		t.Fatalf("a guarded write: %v", err)
	}
}
