package zktest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Outcome is the result of a call.
type Outcome[T any] struct {
	Got T
	Err error
}

// Go makes a call in a goroutine, and delivers its result.
func Go[T any](ctx context.Context, call func(context.Context) (T, error)) <-chan Outcome[T] {
	done := make(chan Outcome[T], 1)
	go func() {
		got, err := call(ctx)
		done <- Outcome[T]{got, err}
	}()
	return done
}

// GoDo is [Go] for a call that returns only an error.
func GoDo(ctx context.Context, call func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	return done
}

// Waits has a contender enter in a goroutine. It returns when the contender's znode exists.
// enter returns the call to make; that call must call joined.
func Waits[T any](ctx context.Context, enter func(joined func(recipes.Place)) func(context.Context) (T, error)) (recipes.Place, <-chan Outcome[T]) {
	joined := make(chan recipes.Place, 1)
	done := Go(ctx, enter(func(p recipes.Place) { joined <- p }))
	return <-joined, done
}
