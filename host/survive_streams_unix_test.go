//go:build unix

package host_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// words converts the values of a watch to text. If a value differs from the last one and its
// text does not, words skips it: a configuration's root is created before the first key. It
// does not skip a value that equals the last one, so that a test finds repeated values.
func words[T any](values <-chan T, err error, word func(T) string) (<-chan string, error) {
	if err != nil {
		return nil, err
	}
	texts := make(chan string, 100)
	go func() {
		defer close(texts)
		var last []T
		for v := range values {
			if last == nil || word(v) != word(last[0]) || reflect.DeepEqual(v, last[0]) {
				texts <- word(v)
			}
			last = []T{v}
		}
	}()
	return texts, nil
}

// stream is a kind of watch. Its first value is "", and n after the nth change by another
// session.
type stream struct {
	name   string
	watch  func(context.Context, recipes.Client, string) (<-chan string, error)
	change func(context.Context, recipes.Client, string) (changed func(n int) error)
}

func setKey(ctx context.Context, s recipes.Client, path string) func(n int) error {
	return func(n int) error {
		c, _ := s.Configuration(path)
		_, err := c.Set(ctx, "key", fmt.Append(nil, n), recipes.AnyRevision)
		return err
	}
}

var streams = []stream{
	{"key", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		c, _ := s.Configuration(path)
		values, err := c.Watch(ctx, "key")
		return words(values, err, func(e recipes.Entry) string { return string(e.Value) })
	}, setKey},
	{"configuration", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		c, _ := s.Configuration(path)
		values, err := c.WatchTree(ctx)
		return words(values, err, func(es []recipes.Entry) (all string) {
			for _, e := range es {
				all += string(e.Value)
			}
			return all
		})
	}, setKey},
	{"name", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		names, _ := s.Names(path)
		values, err := names.Watch(ctx, "it")
		return words(values, err, func(r recipes.Record) string { return string(r.Data) })
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var r recipes.Registration
		return func(n int) (err error) {
			if names, _ := s.Names(path); r == nil {
				r, err = names.Register(ctx, "it", fmt.Append(nil, n))
				return err
			}
			return r.Update(ctx, fmt.Append(nil, n))
		}
	}},
	{"leader", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		e, _ := s.Election(path, recipes.ElectionConfig{})
		values, err := e.Observe(ctx)
		return words(values, err, func(l recipes.Leader) string {
			if l.Acknowledged {
				return string(l.Acknowledgement)
			}
			return string(l.Data)
		})
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var l recipes.Leadership
		return func(n int) (err error) {
			if e, _ := s.Election(path, recipes.ElectionConfig{}); l == nil {
				l, err = e.Campaign(ctx, fmt.Append(nil, n))
				return err
			}
			return l.Acknowledge(ctx, fmt.Append(nil, n))
		}
	}},
	{"group", func(ctx context.Context, s recipes.Client, path string) (<-chan string, error) {
		g, _ := s.Group(path, recipes.GroupConfig{})
		values, err := g.Watch(ctx)
		return words(values, err, func(ms []recipes.Member) string {
			if len(ms) == 0 {
				return ""
			}
			return string(ms[0].Data)
		})
	}, func(ctx context.Context, s recipes.Client, path string) func(n int) error {
		var m recipes.Membership
		return func(n int) (err error) {
			if g, _ := s.Group(path, recipes.GroupConfig{Name: "it"}); m == nil {
				m, err = g.Join(ctx, fmt.Append(nil, n))
				return err
			}
			return m.Update(ctx, fmt.Append(nil, n))
		}
	}},
}

// observed is an open watch.
type observed struct {
	*testing.T
	values <-chan string
}

// next checks the next value.
func (o observed) next(want string) {
	o.Helper()
	select {
	case now, open := <-o.values:
		if !open || now != want {
			o.Fatalf("got %q (open: %v), want %q", now, open, want)
		}
	case <-time.After(patience):
		o.Fatalf("did not get %q", want)
	}
}
