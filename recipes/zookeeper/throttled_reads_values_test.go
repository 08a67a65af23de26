package zookeeper_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func questionsAboutValues() []question {
	first := func(ctx context.Context, ask func(context.Context) (any, error)) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return ask(ctx)
	}
	return []question{
		{"configuration", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Configuration](t)(other.Configuration("/c")), must[recipes.Configuration](t)(asks.Configuration("/c"))
			for _, key := range []string{"a", "a/b", "c"} {
				must[recipes.Revision](t)(theirs.Set(ctx, key, []byte(key), recipes.AnyRevision))
			}
			keys := func(all []recipes.Entry, err error) (any, error) {
				var out []string
				for _, e := range all {
					out = append(out, e.Key+string(e.Value))
				}
				return out, err
			}
			return func(ctx context.Context) (any, error) {
				all, err := keys(mine.Snapshot(ctx))
				if err != nil {
					return nil, err
				}
				watched, err := first(ctx, func(ctx context.Context) (any, error) {
					values, err := mine.WatchTree(ctx)
					if err != nil {
						return nil, err
					}
					return keys(<-values, nil)
				})
				if err != nil {
					return nil, err
				}
				e, err := mine.Get(ctx, "a/b")
				return fmt.Sprint(all, watched, string(e.Value)), err
			}
		}},
		{"group", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Group](t)(other.Group("/g", recipes.GroupConfig{})), must[recipes.Group](t)(asks.Group("/g", recipes.GroupConfig{}))
			for _, data := range []string{"1", "2", "3"} {
				must[recipes.Membership](t)(theirs.Join(ctx, []byte(data)))
			}
			return func(ctx context.Context) (any, error) {
				all, err := mine.Members(ctx)
				if err != nil {
					return nil, err
				}
				return first(ctx, func(ctx context.Context) (any, error) {
					values, err := mine.Watch(ctx)
					if err != nil {
						return nil, err
					}
					out := ""
					for _, m := range append(all, <-values...) {
						out += string(m.Data)
					}
					return out, nil
				})
			}
		}},
		{"names", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs, mine := must[recipes.Names](t)(other.Names("/n")), must[recipes.Names](t)(asks.Names("/n"))
			must[recipes.Registration](t)(theirs.Register(ctx, "here", []byte("1")))
			if err := theirs.RegisterPersistent(ctx, "stays", []byte("2")); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) (any, error) {
				all, err := mine.List(ctx)
				if err != nil {
					return nil, err
				}
				one, err := mine.Lookup(ctx, "stays")
				if err != nil {
					return nil, err
				}
				out := ""
				for _, r := range append(all, one) {
					out += r.Name + string(r.Data)
				}
				return out, nil
			}
		}},
		{"queue", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			cfg := recipes.QueueConfig{MaxDeliveries: 1}
			theirs, mine := queueOf(t, other, "/q", cfg), queueOf(t, asks, "/q", cfg)
			must[[]recipes.ElementID](t)(theirs.PutMany(ctx, []byte("dead"), []byte("received"), []byte("there")))
			if err := must[recipes.Delivery](t)(theirs.Receive(ctx)).Return(ctx); err != nil {
				t.Fatal(err)
			}
			must[recipes.Delivery](t)(theirs.Receive(ctx))
			return func(ctx context.Context) (any, error) {
				n, err := mine.Len(ctx)
				if err != nil {
					return nil, err
				}
				dead, err := mine.DeadLetters(ctx)
				if err != nil {
					return nil, err
				}
				e, err := mine.Peek(ctx)
				return fmt.Sprint(n, len(dead), string(e.Data)), err
			}
		}},
		{"numbers and barriers", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			must[int64](t)(counterAt(t, other, "/n").Add(ctx, 3))
			must[int64](t)(latchAt(t, other, "/l", 5).CountDown(ctx))
			if err := barrierAt(t, other, "/b").Set(ctx, nil); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) (any, error) {
				n, err := counterAt(t, asks, "/n").Get(ctx)
				if err != nil {
					return nil, err
				}
				count, err := latchAt(t, asks, "/l", 5).Count(ctx)
				if err != nil {
					return nil, err
				}
				isSet, err := barrierAt(t, asks, "/b").IsSet(ctx)
				return fmt.Sprint(n, count, isSet), err
			}
		}},
		{"transaction", func(t *testing.T, ctx context.Context, asks, other recipes.Session) func(context.Context) (any, error) {
			theirs := transactionOf(t, other, recipes.OwnNodes)
			if err := theirs.Begin(ctx, []byte("payload"), "1", "2", "3"); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"1", "2"} {
				if err := must[recipes.Site](t)(theirs.Join(ctx, name)).Vote(ctx, recipes.VoteCommit); err != nil {
					t.Fatal(err)
				}
			}
			if err := barrierAt(t, other, theirs.Path()+"/s_2").Remove(ctx); err != nil { // it dies
				t.Fatal(err)
			}
			must[recipes.Decision](t)(theirs.Abort(ctx, "why"))
			return func(ctx context.Context) (any, error) {
				status, err := transactionOf(t, asks, "").Status(ctx)
				decision := status.Decision
				status.Decision = nil
				return fmt.Sprintf("%+v %+v", status, decision), err
			}
		}},
	}
}
