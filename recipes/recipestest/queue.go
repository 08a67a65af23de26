package recipestest

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueForm is what queues and priority queues have in common, so that one test
// serves both.
type queueForm struct {
	name    string
	pattern string // of an element's name
	open    func(s recipes.Session, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error)
}

type putMany func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error)

var queueForms = []queueForm{
	{"queue", `^queue-[0-9]{10}$`, func(s recipes.Session, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error) {
		q, err := s.Queue(path, cfg)
		if err != nil {
			return nil, nil, err
		}
		return q, q.PutMany, nil
	}},
	{"priority queue", `^queue-05-[0-9]{10}$`, func(s recipes.Session, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error) {
		q, err := s.PriorityQueue(path, cfg)
		if err != nil {
			return nil, nil, err
		}
		return q, func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
			return q.PutMany(ctx, 5, data...)
		}, nil
	}},
}

// end is one session's end of a queue: it puts and consumes.
type end struct {
	recipes.Consumer
	f    *fixture
	s    recipes.Session
	many putMany
}

func (form queueForm) end(f *fixture, s recipes.Session, path string, cfg ...recipes.QueueConfig) end {
	f.Helper()
	var c recipes.QueueConfig
	if len(cfg) > 0 {
		c = cfg[0]
	}
	consumer, many, err := form.open(s, path, c)
	f.must(err)
	return end{consumer, f, s, many}
}

// put puts elements one by one.
func (e end) put(data ...string) []recipes.ElementID {
	e.f.Helper()
	var ids []recipes.ElementID
	for _, d := range data {
		id, err := e.many(e.f.ctx, []byte(d))
		e.f.must(err)
		ids = append(ids, id...)
	}
	return ids
}

// takes takes elements and checks what they are.
func (e end) takes(want ...string) {
	e.f.Helper()
	for _, w := range want {
		got, err := e.Take(e.f.ctx)
		e.f.must(err)
		if string(got.Data) != w {
			e.f.Errorf("took %q; want %q", got.Data, w)
		}
	}
}

// receives receives an element and checks what it is.
func (e end) receives(want string, attempt int) recipes.Delivery {
	e.f.Helper()
	d, err := e.Receive(e.f.ctx)
	e.f.must(err)
	e.f.delivered(d, want, attempt)
	return d
}

func (f *fixture) delivered(d recipes.Delivery, want string, attempt int) {
	f.Helper()
	if got := d.Element(); string(got.Data) != want || d.Attempt() != attempt {
		f.Errorf("received %q, attempt %d; want %q, %d", got.Data, d.Attempt(), want, attempt)
	}
}

// receiving receives in the background, and returns when it waits.
func (e end) receiving() *pending[recipes.Delivery] {
	e.f.Helper()
	p := start(e.f, func() (recipes.Delivery, error) { return e.Receive(e.f.ctx) })
	e.waits()
	return p
}

// waits returns when the session has looked at the queue.
func (e end) waits() {
	e.f.Helper()
	e.f.reach(e.s, func(c recipes.Counters) bool { return listings(c)+c.ByKind["exists"] > 0 })
}

func (e end) holds(n int) {
	e.f.Helper()
	got, err := e.Len(e.f.ctx)
	e.f.must(err)
	if got != n {
		e.f.Errorf("length %d; want %d", got, n)
	}
}

func queueTests() []test {
	var all []test
	for _, form := range queueForms {
		for _, t := range slices.Concat(putTests(), takeTests(), deliveryTests()) {
			all = append(all, test{form.name + "/" + t.name, func(f *fixture) { t.run(f, form) }})
		}
		all = append(all, queueContextTests(form)...)
	}
	return append(all, orderTests()...)
}

type queueTest struct {
	name string
	run  func(*fixture, queueForm)
}

func putTests() []queueTest {
	return []queueTest{
		{"put/elements are persistent and named as the text names them", putNames},
		{"put/many are put together, in order, or not at all", putTogether},
		{"put/a lost reply does not put twice", putReplyLost},
		{"put/a lost reply does not put twice what was taken meanwhile", putReplyLostAndTaken},
		{"put/too large is refused before it is sent", putTooLarge},
		{"put/ephemeral elements go with their session", putEphemeral},
		{"put/a bad path or configuration is ErrInvalid", queueInvalid},
		{"bounded/a put waits while the queue is full", boundedWaits},
		{"bounded/the bound is exact, however many put", boundedExact},
		{"bounded/claimed elements count", boundedClaims},
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
			f.Errorf("%s holds %q of owner %#x", id, data, stat.EphemeralOwner)
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
		f.Error("put by several transactions")
	}
	if ids, err := e.many(f.ctx); len(ids) != 0 || err != nil {
		f.Errorf("put nothing: %q, %v", ids, err)
	}
	big := make([]byte, recipes.DefaultMaxPacket/2)
	_, err = e.many(f.ctx, big, big, big)
	f.is(err, recipes.ErrTooLarge)
	e.holds(3)
	e.takes("1", "2", "3")
}

// replyLost makes a call whose first reply after the given moment is held until
// it was carried out, and then lost.
func (e end) replyLost(call func(), done func()) {
	e.f.proxy.holdReplies(e.s.ID())
	call()
	done()
	e.f.proxy.cut(e.s.ID())
	e.f.proxy.restore(e.s.ID())
}

func putReplyLost(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	e.put("first")
	n := len(f.children(f.path("a")))
	var call *pending[[]recipes.ElementID]
	e.replyLost(func() {
		call = start(f, func() ([]recipes.ElementID, error) { return e.many(f.ctx, []byte("second"), []byte("third")) })
	}, func() { f.awaitChildren(f.path("a"), n+2) })
	ids := call.value1(f)
	e.holds(3)
	for i, want := range []string{"second", "third"} {
		if data, _ := f.read(f.path("a", string(ids[i]))); data != want {
			f.Errorf("%s holds %q; want %q", ids[i], data, want)
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
	if ids := call.value1(f); len(ids) != 1 || ids[0] != "" {
		f.Errorf("named %q; nobody can know", ids)
	}
	e.holds(0)
}

func putTooLarge(f *fixture, form queueForm) {
	e := form.end(f, f.open(), f.path("a"))
	_, err := e.many(f.ctx, make([]byte, recipes.DefaultMaxPacket))
	f.is(err, recipes.ErrTooLarge)
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
	f.is(d.Ack(f.ctx), recipes.ErrNotHeld) // the element went first
	f.awaitChildren(f.path("a", "claims"), 0)
}

func queueInvalid(f *fixture, form queueForm) {
	s := f.open()
	for _, bad := range []struct {
		path string
		cfg  recipes.QueueConfig
	}{
		{"relative", recipes.QueueConfig{}}, {"", recipes.QueueConfig{}},
		{"/a", recipes.QueueConfig{Capacity: -1}}, {"/a", recipes.QueueConfig{MaxDeliveries: -1}},
	} {
		c, _, err := form.open(s, bad.path, bad.cfg)
		f.is(err, recipes.ErrInvalid)
		if c != nil {
			f.Errorf("%+v gave a queue", bad)
		}
	}
	_, err := form.end(f, s, f.path("a"), recipes.QueueConfig{Capacity: 1}).many(f.ctx, nil, nil)
	f.is(err, recipes.ErrInvalid)
}

func boundedWaits(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{Capacity: 2}
	full, taker := form.end(f, f.open(), f.path("a"), cfg), form.end(f, f.open(), f.path("a"), cfg)
	full.put("1", "2")
	before := listings(f.counters(full.s))
	call := startErr(f, func() error { _, err := full.many(f.ctx, []byte("3")); return err })
	f.reach(full.s, func(c recipes.Counters) bool { return listings(c) >= before+2 })
	call.blocked(f)
	form.putInVain(f, f.path("a"), cfg)
	taker.takes("1")
	_, err := call.result(f)
	f.must(err)
	taker.takes("2", "3")
	taker.holds(0)
}

// putInVain puts into a full queue until its context ends. It closes the session,
// after which nothing of the put can be under way, as it can be through a plugin
// that learns of the end a moment later.
func (form queueForm) putInVain(f *fixture, path string, cfg recipes.QueueConfig) {
	f.Helper()
	s := f.open()
	_, err := form.end(f, s, path, cfg).many(f.briefly(), []byte("never"))
	f.is(err, context.DeadlineExceeded)
	f.must(s.Close(f.ctx))
}

func boundedExact(f *fixture, form queueForm) {
	const capacity, each, producers = 3, 4, 4
	cfg := recipes.QueueConfig{Capacity: capacity}
	var calls []*pending[struct{}]
	for i := range producers {
		e := form.end(f, f.open(), f.path("a"), cfg)
		calls = append(calls, startErr(f, func() error {
			for j := range each {
				if _, err := e.many(f.ctx, fmt.Appendf(nil, "%d-%d", i, j)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	taker := form.end(f, f.open(), f.path("a"), cfg)
	seen := map[string]bool{}
	for range each * producers {
		if n, err := taker.Len(f.ctx); err != nil || n > capacity {
			f.Errorf("length %d, %v; the bound is %d", n, err, capacity)
		}
		got, err := taker.Take(f.ctx)
		f.must(err)
		seen[string(got.Data)] = true
	}
	for _, c := range calls {
		_, err := c.result(f)
		f.must(err)
	}
	if len(seen) != each*producers {
		f.Errorf("%d different elements; want %d", len(seen), each*producers)
	}
}

func boundedClaims(f *fixture, form queueForm) {
	cfg := recipes.QueueConfig{Capacity: 1}
	e := form.end(f, f.open(), f.path("a"), cfg)
	e.put("1")
	d := e.receives("1", 1)
	form.putInVain(f, f.path("a"), cfg)
	f.must(d.Ack(f.ctx))
	e.put("2")
}
