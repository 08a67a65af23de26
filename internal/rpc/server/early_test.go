package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The time is virtual.
func TestEarlyLeavesTimeForTheAnswer(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		10 * time.Second:       10*time.Second - answerTime,
		400 * time.Millisecond: 300 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), given)
			defer cancel()
			ctx, done := early(ctx)
			defer done()
			begun := time.Now()
			<-ctx.Done()
			if d := time.Since(begun); d != want {
				t.Errorf("of %v it has %v; want %v", given, d, want)
			}
		})
	}
	ctx, done := early(t.Context())
	defer done()
	if _, ends := ctx.Deadline(); ends {
		t.Error("a context without a deadline got one")
	}
}
