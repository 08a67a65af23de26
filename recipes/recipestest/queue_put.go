package recipestest

import (
	"regexp"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func putTests() []queueTest {
	return []queueTest{
		{"put/elements are persistent, with the names of the source text", putNames},
		{"put/PutMany puts all elements in order in one transaction, or none", putTogether},
		{"put/a put whose reply is lost is not repeated", putReplyLost},
		{"put/a put whose reply is lost is not repeated after the element was taken", putReplyLostAndTaken},
		{"put/if the reply and then the session is lost, it is ErrUnknownOutcome", putSessionLost},
		{"put/data that is too large is ErrTooLarge, and nothing is put", putTooLarge},
		{"put/ephemeral elements are deleted with their session", putEphemeral},
		{"put/a bad path or configuration is ErrInvalid", queueInvalid},
		{"bounded/a put waits while the queue is full", boundedWaits},
		{"bounded/a put that is cancelled while it waits puts nothing", boundedCancelled},
		{"bounded/many producers do not exceed the capacity", boundedExact},
		{"bounded/claimed elements count toward the capacity", boundedClaims},
	}
}

func putNames(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	if e.Path() != f.path("a") {
		f.Errorf("path %q", e.Path())
	}
	ids := e.put("one", "two")
	for i, id := range ids {
		if !regexp.MustCompile(form.pattern).MatchString(string(id)) {
			f.Errorf("named %q", id)
		}
		data, stat := f.read(f.path("a", string(id)))
		if data != []string{"one", "two"}[i] || stat.EphemeralOwner != 0 {
			f.Errorf("%s has data %q and owner %#x", id, data, stat.EphemeralOwner)
		}
	}
	f.must(e.s.Close(f.ctx))
	form.end(f, f.open(), f.path("a")).takes("one", "two")
}

func putTogether(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	ids, err := e.many(f.ctx, []byte("1"), []byte("2"), []byte("3"))
	f.must(err)
	if len(ids) != 3 || ids[0] >= ids[1] || ids[1] >= ids[2] {
		f.Errorf("named %q", ids)
	}
	_, one := f.read(f.path("a", string(ids[0])))
	_, three := f.read(f.path("a", string(ids[2])))
	if one.Czxid != three.Czxid {
		f.Error("put in several transactions")
	}
	if ids, err := e.many(f.ctx); len(ids) != 0 || err != nil {
		f.Errorf("put nothing: %q, %v", ids, err)
	}
	big := make([]byte, 1<<19)
	f.is(errOf(e.many(f.ctx, big, big, big)), recipes.ErrTooLarge)
	e.holds(3)
	e.takes("1", "2", "3")
}

// replyLost makes a call, waits until done has seen its effect, and drops the reply.
func (e end) replyLost(call func(), done func()) {
	e.f.relay(e.s).HoldReplies()
	call()
	done()
	e.f.relay(e.s).Drop()
	e.f.relay(e.s).Restore()
}

func putReplyLost(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	e.put("first")
	n := len(f.children(f.path("a")))
	var call *pending[[]recipes.ElementID]
	e.replyLost(func() {
		call = start(f, func() ([]recipes.ElementID, error) { return e.many(f.ctx, []byte("second"), []byte("third")) })
	}, func() { f.awaitChildren(f.path("a"), n+2) })
	ids := call.must(f)
	e.holds(3)
	for i, want := range []string{"second", "third"} {
		if data, _ := f.read(f.path("a", string(ids[i]))); data != want {
			f.Errorf("%s has data %q; want %q", ids[i], data, want)
		}
	}
	e.takes("first", "second", "third")
}

func putReplyLostAndTaken(f *fixture, form queueForm) {
	e, other := form.end(f, f.open(), f.path("a")), form.end(f, f.open(), f.path("a"))
	e.put("first")
	other.takes("first")
	var call *pending[[]recipes.ElementID]
	e.replyLost(func() {
		call = start(f, func() ([]recipes.ElementID, error) { return e.many(f.ctx, []byte("second")) })
	}, func() { other.takes("second") })
	if ids := call.must(f); len(ids) != 1 || ids[0] != "" {
		f.Errorf("named %q; want an unknown name", ids)
	}
	e.holds(0)
}

func putSessionLost(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	e.put("first")
	n := len(f.children(f.path("a")))
	f.relay(e.s).HoldReplies()
	call := startErr(f, func() error {
		_, err := e.many(f.ctx, []byte("second"))
		return err
	})
	f.awaitChildren(f.path("a"), n+1)
	f.expire(e.s)
	f.is(call.failure(f), recipes.ErrUnknownOutcome, recipes.ErrSessionLost)
	other := form.end(f, f.open(), f.path("a"))
	other.takes("first", "second")
}

func putTooLarge(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	f.is(errOf(e.many(f.ctx, make([]byte, 1<<20))), recipes.ErrTooLarge)
	e.holds(0)
	f.must(e.s.Err())
}

func putEphemeral(f *fixture, form queueForm) {
	s := f.open()
	e := form.end(f, s, f.path("a"), recipes.QueueConfig{Ephemeral: true})
	id := e.put("one", "two")[1]
	if _, stat := f.read(f.path("a", string(id))); stat.EphemeralOwner != s.ID() {
		f.Errorf("owner %#x; want %#x", stat.EphemeralOwner, s.ID())
	}
	other := form.end(f, f.open(), f.path("a"))
	d := other.receives("one", 1)
	f.must(s.Close(f.ctx))
	other.holds(0)
	f.is(d.Ack(f.ctx), recipes.ErrNotHeld) // the element was deleted with its session
	f.awaitChildren(f.path("a", "claims"), 0)
}
