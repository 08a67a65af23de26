package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueContextTests are about contexts that end, for every call alike.
func queueContextTests(form queueForm) []test {
	var tests []test
	for _, c := range queueCalls {
		tests = append(tests,
			test{form.name + "/a server that does not answer/" + c.name, func(f *fixture) {
				e := form.end(f, f.open(), f.path("a"))
				e.put("one", "two")
				d := e.receives("one", 1)
				f.relay(e.s).Hold()
				f.is(c.call(f.briefly(), e, d), context.DeadlineExceeded)
				e.recovers()
			}},
			test{form.name + "/a connection that is down/" + c.name, func(f *fixture) {
				e := form.end(f, f.open(), f.path("a"))
				e.put("one", "two")
				d := e.receives("one", 1)
				f.sever(e.s)
				err := c.call(f.briefly(), e, d)
				f.is(err, context.DeadlineExceeded)
				f.isNot(err, recipes.ErrSessionLost)
				if c.name != "Ack" && c.name != "Return" && !errors.Is(err, recipes.ErrUnknownOutcome) {
					f.is(err, recipes.ErrUnavailable)
				}
				e.recovers()
			}})
	}
	return tests
}

// recovers checks that the session goes on when the fault ends, and that every
// claim but that of the first element has been given back.
func (e end) recovers() {
	e.f.Helper()
	e.f.relay(e.s).Restore()
	e.put("last")
	for {
		got, err := e.Take(e.f.ctx)
		e.f.must(err)
		if string(got.Data) == "last" {
			break
		}
	}
	e.f.must(e.s.Err())
}
