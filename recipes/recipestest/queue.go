package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueForm is a queue or a priority queue. Each test runs against both.
type queueForm struct {
	name    string
	pattern string // matches the names of elements
	open    func(s recipes.Client, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error)
}

type putMany func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error)

var queueForms = []queueForm{
	{"queue", `^queue-[0-9]{10}$`, func(s recipes.Client, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error) {
		q, err := s.Queue(path, cfg)
		if err != nil {
			return nil, nil, err
		}
		return q, q.PutMany, nil
	}},
	{"priority queue", `^queue-05-[0-9]{10}$`, func(s recipes.Client, path string, cfg recipes.QueueConfig) (recipes.Consumer, putMany, error) {
		q, err := s.PriorityQueue(path, cfg)
		if err != nil {
			return nil, nil, err
		}
		return q, func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
			return q.PutMany(ctx, 5, data...)
		}, nil
	}},
}

// end is a queue that one session has opened.
type end struct {
	recipes.Consumer
	f    *fixture
	s    recipes.Client
	many putMany
}

func (form queueForm) end(f *fixture, s recipes.Client, path string, cfg ...recipes.QueueConfig) end {
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

// takes takes elements and checks their data.
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

// receives receives an element and checks its data.
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

// receiving starts to receive, and returns when the session has read the queue.
func (e end) receiving() *pending[recipes.Delivery] {
	e.f.Helper()
	p := start(e.f, func() (recipes.Delivery, error) { return e.Receive(e.f.ctx) })
	e.waits()
	return p
}

// waits returns when the session has read the queue.
func (e end) waits() {
	e.f.Helper()
	e.f.reach(e.s, func(c recipes.Stats) bool { return listings(c)+c.ByKind["exists"] > 0 })
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
		for _, t := range slices.Concat(putTests(), takeTests(), manyTests(), deliveryTests()) {
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
		f.failIf(c != nil, "%+v gave a queue", bad)
	}
	f.is(errOf(form.end(f, s, f.path("a"), recipes.QueueConfig{Capacity: 1}).many(f.ctx, nil, nil)), recipes.ErrInvalid)
}

// queueSubject is a queue with two elements, and a delivery of the first.
type queueSubject struct {
	end
	d recipes.Delivery
}

// queueContextTests tests every call of a queue and a delivery.
func queueContextTests(form queueForm) []test {
	return endingTests[queueSubject]{
		calls: []call[queueSubject]{
			{"Put", func(ctx context.Context, q queueSubject) error { return errOf(q.many(ctx, []byte("more"))) }},
			{"Take", func(ctx context.Context, q queueSubject) error { return errOf(q.Take(ctx)) }},
			{"Receive", func(ctx context.Context, q queueSubject) error { return errOf(q.Receive(ctx)) }},
			{"TakeMany", func(ctx context.Context, q queueSubject) error { return errOf(q.TakeMany(ctx, 2)) }},
			{"ReceiveMany", func(ctx context.Context, q queueSubject) error { return errOf(q.ReceiveMany(ctx, 2)) }},
			{"AckMany", func(ctx context.Context, q queueSubject) error { return q.AckMany(ctx, q.d) }},
			{"Peek", func(ctx context.Context, q queueSubject) error { return errOf(q.Peek(ctx)) }},
			{"Len", func(ctx context.Context, q queueSubject) error { return errOf(q.Len(ctx)) }},
			{"DeadLetters", func(ctx context.Context, q queueSubject) error { return errOf(q.DeadLetters(ctx)) }},
			{"Ack", func(ctx context.Context, q queueSubject) error { return q.d.Ack(ctx) }},
			{"Return", func(ctx context.Context, q queueSubject) error { return q.d.Return(ctx) }},
		},
		endings: []ending{unanswered, severed},
		begin: func(f *fixture) (recipes.Client, queueSubject) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("one", "two")
			return e.s, queueSubject{e, e.receives("one", 1)}
		},
		// If a failed call kept a claim, its element could not be taken.
		recovers: func(f *fixture, _ recipes.Client, q queueSubject) {
			q.put("last")
			for {
				got := get(f, q.Take)
				if string(got.Data) == "last" {
					return
				}
			}
		},
	}.tests(form.name + "/")
}
