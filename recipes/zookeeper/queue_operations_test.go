package zookeeper_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// consumer is a queue of any kind.
type consumer struct {
	recipes.Consumer
	put func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error)
}

// putting puts an element with each of the texts.
func (q consumer) putting(ctx context.Context, texts ...string) error {
	var data [][]byte
	for _, t := range texts {
		data = append(data, []byte(t))
	}
	_, err := q.put(ctx, data...)
	return err
}

// takes takes elements, and checks their data.
func (q consumer) takes(ctx context.Context, want ...string) error {
	for _, w := range want {
		e, err := q.Take(ctx)
		if err == nil && string(e.Data) != w {
			err = fmt.Errorf("taken: %q; want %q", e.Data, w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takesMany takes a batch, and then checks its data.
func (q consumer) takesMany(ctx context.Context, most int, want *[]string) error {
	taken, err := q.TakeMany(ctx, most)
	var got []string
	for _, e := range taken {
		got = append(got, string(e.Data))
	}
	if err == nil && !slices.Equal(got, *want) {
		err = fmt.Errorf("taken: %q; want %q", got, *want)
	}
	return err
}

// receivesMany receives a batch, and then checks its data.
func (q consumer) receivesMany(ctx context.Context, most int, want *[]string) ([]recipes.Delivery, error) {
	all, err := q.ReceiveMany(ctx, most)
	var got []string
	for _, d := range all {
		got = append(got, string(d.Element().Data))
	}
	if err == nil && !slices.Equal(got, *want) {
		err = fmt.Errorf("received: %q; want %q", got, *want)
	}
	return all, err
}

// drains takes all elements, and checks their data.
func (q consumer) drains(ctx context.Context, want ...string) error {
	err := q.takes(ctx, want...)
	if n, lenErr := q.Len(ctx); err == nil && (lenErr != nil || n != 0) {
		err = fmt.Errorf("then there are %d elements, %v", n, lenErr)
	}
	return err
}

func (q consumer) receives(ctx context.Context, want string) (recipes.Delivery, error) {
	d, err := q.Receive(ctx)
	if err == nil && string(d.Element().Data) != want {
		err = fmt.Errorf("received: %q; want %q", d.Element().Data, want)
	}
	return d, err
}

// consumer returns the queue or the priority queue at stagePath.
func (s *stage) consumer(in recipes.Recipes, cfg recipes.QueueConfig, priority bool) consumer {
	if !priority {
		q := s.queue(in, cfg)
		return consumer{q, q.PutMany}
	}
	q := must.Get(in.PriorityQueue(stagePath, cfg))(s.T)
	return consumer{q, func(ctx context.Context, data ...[]byte) ([]recipes.ElementID, error) {
		return q.PutMany(ctx, 5, data...)
	}}
}

// element is the znode of the element with that data, or "". It may be a dead letter.
func (s *stage) element(data string) string {
	n := s.find(func(n zkserver.Node) bool { return strings.HasPrefix(n.Path, stagePath+"/") && string(n.Data) == data })
	if n == nil {
		return ""
	}
	return n.Path
}

// holding reports whether there is an element with that data.
func (s *stage) holding(data string) bool { return s.element(data) != "" }

// queueOperations put and take elements. Each element is put once, and one consumer gets it.
// queueWays get a delivery: they put an element and receive it.
func queueWays() []way {
	uses := []use{{held, options{}}}
	return []way{
		wayOf("delivery", way{uses: uses}, nil).after(func(ctx context.Context, s recipes.Recipes, path string) error {
			q, err := s.Queue(path, recipes.QueueConfig{})
			if err == nil {
				_, err = q.Put(ctx, []byte("x"))
			}
			return err
		}),
		wayOf("delivery by priority", way{uses: uses}, nil).after(func(ctx context.Context, s recipes.Recipes, path string) error {
			q, err := s.PriorityQueue(path, recipes.QueueConfig{})
			if err == nil {
				_, err = q.Put(ctx, 7, []byte("x"))
			}
			return err
		}),
	}
}

func queueOperations() (all []operation) {
	for _, kind := range []struct {
		of       string
		cfg      recipes.QueueConfig
		priority bool
	}{
		{"Queue", recipes.QueueConfig{}, false},
		{"PriorityQueue", recipes.QueueConfig{}, true},
		{"Queue", recipes.QueueConfig{Dialect: recipes.Curator}, false},
		{"Queue", recipes.QueueConfig{Dialect: recipes.Kazoo}, false},
		{"PriorityQueue", recipes.QueueConfig{Dialect: recipes.Kazoo}, true},
	} {
		at := func(s *stage, in recipes.Client) consumer { return s.consumer(in, kind.cfg, kind.priority) }
		named := ", " + kind.of + " " + string(cmp.Or(kind.cfg.Dialect, recipes.ZooKeeper))
		// filled returns the victim's queue, with three elements that the other session has put.
		filled := func(s *stage) consumer {
			s.ok(at(s, s.other).putting(s.ctx, "1", "2", "3"))
			return at(s, s.victim)
		}
		all = append(all,
			operation{"Consumer.Len" + named, func(s *stage) doing {
				return asking(filled(s).Len, func(n int) string { return fmt.Sprint(n) })
			}},
			operation{"Consumer.Peek" + named, func(s *stage) doing {
				return asking(filled(s).Peek, func(e recipes.Element) string { return fmt.Sprint(e.Priority, string(e.Data)) })
			}},
			operation{kind.of + ".PutMany" + named, func(s *stage) doing {
				return doing{
					act:      func(ctx context.Context) error { return at(s, s.victim).putting(ctx, "1", "2") },
					happened: func() bool { return s.holding("2") },
					once:     true,
					denied:   []denial{{znode: stagePath, perms: noCreate}},
					after: func() error {
						if s.lost() && !s.holding("1") {
							return at(s, s.other).drains(s.ctx)
						}
						return at(s, s.other).drains(s.ctx, "1", "2")
					},
				}
			}},
			operation{"Consumer.Take" + named, func(s *stage) doing {
				mine := filled(s)
				return doing{
					act:      func(ctx context.Context) error { return mine.takes(ctx, "1") },
					happened: func() bool { return !s.holding("1") },
					once:     true,
					denied:   []denial{{znode: stagePath, perms: noDelete}},
					after: func() error {
						if s.holding("1") {
							return at(s, s.other).drains(s.ctx, "1", "2", "3")
						}
						return at(s, s.other).drains(s.ctx, "2", "3")
					},
				}
			}},
		)
		all = append(all, operation{"Consumer.TakeMany" + named, func(s *stage) doing {
			mine, want := filled(s), []string{"1", "2"}
			return doing{
				act:      func(ctx context.Context) error { return mine.takesMany(ctx, 2, &want) },
				happened: func() bool { return !s.holding("1") },
				once:     true,
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{{name: "another takes the second", at: zktest.Op(zkserver.OpMulti), do: func() error {
					want = []string{"1", "3"}
					return s.remove(s.element("2"))
				}}},
				after: func() error {
					rest := slices.DeleteFunc([]string{"1", "2", "3"}, func(e string) bool { return !s.holding("1") && slices.Contains(want, e) })
					return at(s, s.other).drains(s.ctx, rest...)
				},
			}
		}})
		for _, before := range []bool{false, true} {
			all = append(all, operation{fmt.Sprintf("Consumer.Take, the next element, the first %v%s", !before, named), func(s *stage) doing {
				mine, theirs := at(s, s.victim), at(s, s.other)
				if before {
					s.ok(errors.Join(theirs.putting(s.ctx, "0"), theirs.takes(s.ctx, "0")))
				}
				put := false
				return doing{
					act:      func(ctx context.Context) error { return mine.takes(ctx, "1") },
					happen:   func() error { put = true; return theirs.putting(s.ctx, "1") },
					happened: func() bool { return put && !s.holding("1") },
					once:     true,
				}
			}})
		}
		if kind.cfg.Dialect == "" {
			all = append(all, deliveryOperations(named, at)...)
		}
	}
	return append(all, boundedOperations()...)
}

// deliveryOperations are the operations on claimed elements.
func deliveryOperations(named string, at func(s *stage, in recipes.Client) consumer) []operation {
	// received returns a delivery to the victim.
	received := func(s *stage) recipes.Delivery {
		s.ok(at(s, s.other).putting(s.ctx, "1"))
		return must.Get(at(s, s.victim).receives(s.ctx, "1"))(s.T)
	}
	return []operation{
		{"Consumer.Take, behind a claim" + named, func(s *stage) doing {
			mine, theirs := at(s, s.victim), at(s, s.other)
			s.ok(theirs.putting(s.ctx, "0", "1", "2"))
			s.ok(mine.takes(s.ctx, "0")) // the session has listed the others
			d := must.Get(theirs.receives(s.ctx, "1"))(s.T)
			return doing{
				act:      func(ctx context.Context) error { return mine.takes(ctx, "2") },
				happened: func() bool { return !s.holding("2") },
				once:     true,
				after:    func() error { return d.Ack(s.ctx) },
			}
		}},
		{"Consumer.Receive" + named, func(s *stage) doing {
			mine := at(s, s.victim)
			s.ok(at(s, s.other).putting(s.ctx, "1"))
			var d recipes.Delivery
			return doing{
				act:    func(ctx context.Context) (err error) { d, err = mine.receives(ctx, "1"); return err },
				end:    func() error { return errors.Join(d.Write(s.ctx), d.Return(s.ctx)) },
				denied: []denial{{znode: s.element("1"), perms: noWrite}, {znode: stagePath + "/claims", perms: noCreate}},
				after:  func() error { return at(s, s.other).drains(s.ctx, "1") },
			}
		}},
		{"Consumer.ReceiveMany" + named, func(s *stage) doing {
			mine, theirs, want := at(s, s.victim), at(s, s.other), []string{"1", "2"}
			s.ok(theirs.putting(s.ctx, "1", "2", "3"))
			var all []recipes.Delivery
			return doing{
				act: func(ctx context.Context) (err error) { all, err = mine.receivesMany(ctx, 2, &want); return err },
				end: func() (err error) {
					for _, d := range all {
						err = errors.Join(err, d.Write(s.ctx), d.Return(s.ctx))
					}
					return err
				},
				denied: []denial{{znode: s.element("2"), perms: noWrite}, {znode: stagePath + "/claims", perms: noCreate}},
				between: []meddling{{name: "another takes the first", at: zktest.Op(zkserver.OpMulti), do: func() error {
					want = []string{"2", "3"}
					return s.remove(s.element("1"))
				}}},
				after: func() error {
					rest := []string{"1", "2", "3"}
					if !s.holding("1") {
						rest = rest[1:]
					}
					return theirs.drains(s.ctx, rest...)
				},
			}
		}},
		{"Consumer.Receive, the first of two" + named, func(s *stage) doing {
			mine, theirs := at(s, s.victim), at(s, s.other)
			s.ok(theirs.putting(s.ctx, "1", "2"))
			var d recipes.Delivery
			return doing{
				act:   func(ctx context.Context) (err error) { d, err = mine.Receive(ctx); return err },
				end:   func() error { return d.Return(s.ctx) },
				after: func() error { return theirs.drains(s.ctx, "1", "2") },
				between: []meddling{{name: "another claims it before it is read", at: zktest.Op(zkserver.OpGetData), do: func() error {
					_, err := theirs.receives(s.ctx, "1")
					return err
				}, then: func() {
					if string(d.Element().Data) != "2" {
						s.Errorf("received: %q", d.Element().Data)
					}
				}}},
			}
		}},
		{"Consumer.Receive, what is returned" + named, func(s *stage) doing {
			mine, theirs := at(s, s.victim), at(s, s.other)
			s.ok(theirs.putting(s.ctx, "1"))
			d := must.Get(theirs.receives(s.ctx, "1"))(s.T)
			var got recipes.Delivery
			return doing{
				act:    func(ctx context.Context) (err error) { got, err = mine.receives(ctx, "1"); return err },
				happen: func() error { return d.Return(s.ctx) },
				end:    func() error { return got.Return(s.ctx) },
				after:  func() error { return theirs.drains(s.ctx, "1") },
			}
		}},
		{"Delivery.Ack" + named, func(s *stage) doing {
			d := received(s)
			return doing{
				act: func(ctx context.Context) error {
					err := d.Ack(ctx)
					if err == nil && s.holding("1") {
						err = errors.New("the element was acknowledged, but still exists")
					}
					return err
				},
				happened: func() bool { return !s.holding("1") },
				lost:     []error{recipes.ErrNotHeld},
				harmless: true, // the call continues in the background, and the next call returns its result
				stays:    true,
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "the element is written", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.write(s.element("1"), "x") }, want: recipes.ErrRemoved, then: func() {
						must.Get(at(s, s.other).receives(s.ctx, "x"))(s.T) // the claim is gone
					}},
					{name: "the element is gone", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(s.element("1")) }, want: recipes.ErrRemoved},
				},
				after: func() error {
					theirs, want := at(s, s.other), []string{"2"}
					if s.holding("1") { // the element was given back
						want = []string{"1", "2"}
					}
					return errors.Join(theirs.putting(s.ctx, "2"), theirs.drains(s.ctx, want...))
				},
			}
		}},
		{"Consumer.AckMany" + named, func(s *stage) doing {
			mine, theirs := at(s, s.victim), at(s, s.other)
			s.ok(theirs.putting(s.ctx, "1", "2"))
			all := must.Get(mine.receivesMany(s.ctx, 2, &[]string{"1", "2"}))(s.T)
			return doing{
				act: func(ctx context.Context) error {
					err := mine.AckMany(ctx, all...)
					if err == nil && (s.holding("1") || s.holding("2")) {
						err = errors.New("the elements were acknowledged, but one still exists")
					}
					return err
				},
				happened: func() bool { return !s.holding("1") && !s.holding("2") },
				lost:     []error{recipes.ErrNotHeld},
				harmless: true, // the call continues in the background, and the next call returns its result
				stays:    true,
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{
					{name: "the second is gone", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(s.element("2")) }, want: recipes.ErrRemoved, then: func() {
						if s.holding("1") {
							s.Error("the first was not acknowledged")
						}
					}},
				},
				after: func() error {
					var rest []string
					for _, e := range []string{"1", "2"} {
						if s.holding(e) { // the element was given back
							rest = append(rest, e)
						}
					}
					return errors.Join(theirs.putting(s.ctx, "3"), theirs.drains(s.ctx, append(rest, "3")...))
				},
			}
		}},
		{"Delivery.Return" + named, func(s *stage) doing {
			d := received(s)
			return doing{
				act:     d.Return,
				between: []meddling{{name: "the claim is gone", at: zktest.Op(zkserver.OpDelete), do: func() error { return s.remove(d.Znode()) }, want: recipes.ErrRemoved}},
				after:   func() error { return at(s, s.other).drains(s.ctx, "1") },
			}
		}},
		{"Grant.Write, a delivery" + named, func(s *stage) doing {
			d := received(s)
			return doing{
				act:      func(ctx context.Context) error { return d.Write(ctx, recipes.Create("/app/data", nil)) },
				happened: func() bool { return s.present("/app/data") },
				once:     true,
				lost:     []error{recipes.ErrNotHeld},
				single:   true,
				end:      func() error { return d.Ack(s.ctx) },
			}
		}},
	}
}

// boundedOperations are the operations of queues with a capacity or a limit of deliveries.
func boundedOperations() []operation {
	limited := func(s *stage, in recipes.Client, deliveries int) consumer {
		return s.consumer(in, recipes.QueueConfig{MaxDeliveries: deliveries}, false)
	}
	bounded := func(s *stage, in recipes.Client, capacity int) recipes.Queue {
		return s.queue(in, recipes.QueueConfig{Capacity: capacity})
	}
	// buried checks the data of the dead letters.
	buried := func(s *stage, want ...string) error {
		dead, err := limited(s, s.other, 1).DeadLetters(s.ctx)
		var found []string
		for _, e := range dead {
			found = append(found, string(e.Data))
		}
		if err == nil && !slices.Equal(found, want) {
			err = fmt.Errorf("dead letters: %q; want %q", found, want)
		}
		return err
	}
	// worn puts elements, and receives the first one that many times.
	worn := func(s *stage, deliveries int, texts ...string) {
		q := limited(s, s.other, 0)
		s.ok(q.putting(s.ctx, texts[0]))
		for range deliveries {
			s.ok(must.Get(q.receives(s.ctx, texts[0]))(s.T).Return(s.ctx))
		}
		s.ok(q.putting(s.ctx, texts[1:]...))
	}
	return []operation{
		{"Queue.Put", func(s *stage) doing {
			return doing{
				act: func(ctx context.Context) error {
					_, err := s.queue(s.victim, recipes.QueueConfig{}).Put(ctx, []byte("1"))
					return err
				},
				happened: func() bool { return s.holding("1") },
				once:     true,
				denied:   []denial{{znode: stagePath, perms: noCreate}},
			}
		}},
		{"PriorityQueue.Put", func(s *stage) doing {
			return doing{
				act: func(ctx context.Context) error {
					_, err := must.Get(s.victim.PriorityQueue(stagePath, recipes.QueueConfig{}))(s.T).Put(ctx, 7, []byte("1"))
					return err
				},
				happened: func() bool { return s.holding("1") },
				once:     true,
			}
		}},
		{"Consumer.Peek, by priority", func(s *stage) doing {
			at := func(in recipes.Client) recipes.PriorityQueue {
				return must.Get(in.PriorityQueue(stagePath, recipes.QueueConfig{}))(s.T)
			}
			for p := range 3 {
				must.Get(at(s.other).Put(s.ctx, 9-p, fmt.Append(nil, p)))(s.T)
			}
			return asking(at(s.victim).Peek, func(e recipes.Element) string { return fmt.Sprint(e.Priority, string(e.Data)) })
		}},
		{"Queue.Put, bounded", func(s *stage) doing {
			return doing{
				act:      func(ctx context.Context) error { _, err := bounded(s, s.victim, 1).Put(ctx, []byte("1")); return err },
				happened: func() bool { return s.holding("1") },
				once:     true,
				denied:   []denial{{znode: stagePath, perms: noCreate}},
			}
		}},
		{"Queue.Put, room", func(s *stage) doing {
			mine, theirs := bounded(s, s.victim, 2), bounded(s, s.other, 2)
			must.Get(theirs.PutMany(s.ctx, []byte("0"), []byte("1")))(s.T)
			return doing{
				act:      func(ctx context.Context) error { _, err := mine.Put(ctx, []byte("2")); return err },
				happen:   func() error { _, err := theirs.Take(s.ctx); return err },
				happened: func() bool { return s.holding("2") },
				once:     true,
			}
		}},
		{"Queue.Put, the last room", func(s *stage) doing {
			mine, theirs := bounded(s, s.victim, 2), bounded(s, s.other, 2)
			must.Get(mine.Put(s.ctx, []byte("0")))(s.T)
			return doing{
				act:      func(ctx context.Context) error { _, err := mine.Put(ctx, []byte("2")); return err },
				happened: func() bool { return s.holding("2") },
				once:     true,
				between: []meddling{{name: "another is faster", at: zktest.Op(zkserver.OpMulti), do: func() error {
					s.start(func(ctx context.Context) error { // makes room when the victim waits for it
						calm()
						if n := must.Get(theirs.Len(ctx))(s.T); n != 2 {
							s.Errorf("%d elements in a queue for 2", n)
						}
						return sole(theirs.Take)(ctx)
					})
					_, err := theirs.Put(s.ctx, []byte("1"))
					return err
				}}},
			}
		}},
		{"Consumer.Receive, after a dead letter", func(s *stage) doing {
			worn(s, 2, "1", "2")
			var d recipes.Delivery
			return doing{
				act:    func(ctx context.Context) (err error) { d, err = limited(s, s.victim, 2).receives(ctx, "2"); return err },
				end:    func() error { return d.Ack(s.ctx) },
				denied: []denial{{znode: stagePath, perms: noDelete}},
				after: func() error {
					if s.lost() {
						must.Get(limited(s, s.other, 2).receives(s.ctx, "2"))(s.T)
					}
					return buried(s, "1")
				},
			}
		}},
		{"Consumer.Receive, after a dead letter that is taken", func(s *stage) doing {
			worn(s, 2, "1", "2")
			mine := limited(s, s.victim, 2)
			s.ok(mine.putting(s.ctx, "3")) // has a receipt
			var d recipes.Delivery
			return doing{
				act:     func(ctx context.Context) (err error) { d, err = mine.receives(ctx, "2"); return err },
				end:     func() error { return d.Ack(s.ctx) },
				between: []meddling{{name: "it is taken", at: zktest.Op(zkserver.OpMulti), do: func() error { return s.remove(s.element("1")) }}},
			}
		}},
		{"Delivery.Return, the last", func(s *stage) doing {
			s.ok(limited(s, s.victim, 1).putting(s.ctx, "1"))
			d := must.Get(limited(s, s.victim, 1).Receive(s.ctx))(s.T)
			return doing{
				act:      d.Return,
				happened: func() bool { return s.below(stagePath+"/dead/") > 0 },
				harmless: true, // the call continues in the background, and the next call returns its result
				lost:     []error{recipes.ErrNotHeld},
				stays:    true, // if it has failed, the next consumer buries the element
				denied:   []denial{{znode: stagePath, perms: noDelete}},
				between: []meddling{{name: "its claim is deleted, and another buries it", at: zktest.Op(zkserver.OpMulti), do: func() error {
					theirs := limited(s, s.other, 1)
					return errors.Join(s.remove(d.Znode()), theirs.putting(s.ctx, "2"), theirs.takes(s.ctx, "2"))
				}, want: recipes.ErrRemoved}},
				after: func() error {
					theirs := limited(s, s.other, 1)
					s.ok(theirs.putting(s.ctx, "2"))
					return errors.Join(sole(func(ctx context.Context) (recipes.Delivery, error) { return theirs.receives(ctx, "2") })(s.ctx), buried(s, "1"))
				},
			}
		}},
		{"Consumer.DeadLetters", func(s *stage) doing {
			worn(s, 1, "1", "2")
			must.Get(limited(s, s.other, 1).receives(s.ctx, "2"))(s.T)
			return asking(limited(s, s.victim, 1).DeadLetters, func(all []recipes.Element) (out string) {
				for _, e := range all {
					out += string(e.Data)
				}
				return out
			})
		}},
		{"Consumer.DeadLetters, one that is deleted", func(s *stage) doing {
			worn(s, 1, "1", "2")
			must.Get(limited(s, s.other, 1).receives(s.ctx, "2"))(s.T)
			found := -1
			return doing{
				act: func(ctx context.Context) error {
					dead, err := limited(s, s.victim, 1).DeadLetters(ctx)
					found = len(dead)
					return err
				},
				between: []meddling{{name: "it is deleted", at: zktest.Op(zkserver.OpGetData, stagePath+"/dead/"), do: func() error { return s.removeLike("/dead/") }, then: func() {
					if found != 0 {
						s.Errorf("%d dead letters", found)
					}
				}}},
			}
		}},
	}
}
