package recipestest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// fatal keeps the text of Fatalf, and ends the goroutine as it does.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A contender that fails before it joins ends its test at once, and the test says why.
func TestACallThatNeverJoinsFailsItsTest(t *testing.T) {
	tb, ended := &fatal{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		waits(&fixture{TB: tb, ctx: t.Context()}, func(func(recipes.Place)) func(context.Context) (int, error) {
			return func(context.Context) (int, error) { return 0, recipes.ErrInternal }
		})
	}()
	<-ended
	if !strings.Contains(tb.text, recipes.ErrInternal.Error()) {
		t.Errorf("the test ended with %q; want the error of the call", tb.text)
	}
}
