package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A recipe is the common part of all recipes' stubs. They make calls in three ways, over
// session.send:
//
//   - read makes a call that may be repeated.
//   - write makes a call that changes something. Its outcome may be unknown.
//   - acquire asks for a grant, by a request id that can be abandoned.
type recipe struct {
	s       *session
	path    string
	what    string // in errors: "lock /path"
	dialect string // in wire form, see wire.ToDialect
	invalid error  // of the name or the key that the call is about
}

// at checks a path and a dialect, and returns the recipe for them. invalid are the errors of the
// rest of the configuration.
func (s *session) at(kind, path string, d recipes.Dialect, invalid ...error) (recipe, error) {
	r := recipe{s: s, path: path, what: kind + " " + path}
	err := recipes.ValidatePath(path)
	if err != nil {
		return r, err
	}
	r.dialect, err = wire.ToDialect(d)
	if err = cmp.Or(append([]error{err}, invalid...)...); err != nil {
		return r, fmt.Errorf("%s: %w", r, err)
	}
	return r, nil
}

// normalize sets a default strategy.
func normalize(s *recipes.Strategy) (err error) {
	*s, err = s.Normalize()
	return err
}

// notRoot returns an error with the reason if the path is the root.
func notRoot(path, reason string) error {
	if path != "/" {
		return nil
	}
	return fmt.Errorf("%w: %s", recipes.ErrInvalid, reason)
}

func (r recipe) Path() string     { return r.path }
func (r recipe) SessionID() int64 { return r.s.ID() }
func (r recipe) String() string   { return r.what }

// about returns the recipe with another name in errors.
func (r recipe) about(what string) recipe { r.what = what; return r }

// A method is a method of a plugin service.
type method[Q, A any] = func(context.Context, Q, ...grpc.CallOption) (A, error)

// nothing converts an empty answer.
func nothing[A any](A) struct{} { return struct{}{} }

// read makes a call that changes nothing, or that may be repeated although it does. The call
// ends with ctx and with the session. On error the result is zero.
func read[Q, A, T any](ctx context.Context, r recipe, ask method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if r.invalid != nil {
		return none, r.invalid
	}
	var answer A
	err = r.s.complete(ctx, callOptions{}, func(ctx context.Context) (err error) { answer, err = ask(ctx, request); return err })
	if err != nil {
		return none, r.s.explain(ctx, r.what, err)
	}
	return convert(answer), nil
}

// write makes a call that changes something; options say whether it may be repeated. On error the
// result is zero.
func write[Q, A, T any](ctx context.Context, r recipe, options callOptions, ask method[Q, A], request Q, convert func(A) T) (none T, err error) {
	if r.invalid != nil {
		return none, r.invalid
	}
	var answer A
	err = r.s.write(ctx, options, func(ctx context.Context) (err error) { answer, err = ask(ctx, request); return err })
	if err != nil {
		return none, r.s.explainWrite(ctx, r.what, err)
	}
	return convert(answer), nil
}

// change makes a write without a result.
func change[Q, A any](ctx context.Context, r recipe, options callOptions, ask method[Q, A], request Q) error {
	_, err := write(ctx, r, options, ask, request, nothing)
	return err
}

// follow opens a stream of values: see watch.
func follow[Q, M, T any](ctx context.Context, r recipe, open method[Q, grpc.ServerStreamingClient[M]], request Q, value func(*M) T) (<-chan T, error) {
	if r.invalid != nil {
		return nil, r.invalid
	}
	return watch(ctx, r.s, r.what, func(ctx context.Context) (grpc.ServerStreamingClient[M], error) { return open(ctx, request) }, value)
}

func (s *session) Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error) {
	err := recipes.ValidatePath(path)
	for _, k := range kinds {
		err = errors.Join(err, k.Validate())
	}
	if err != nil {
		return recipes.Lines{}, err
	}
	return read(ctx, recipe{s: s, what: "contenders at " + path}, s.contenders.Contenders,
		&pb.ContendersRequest{Session: s.handle, Path: path, Kinds: wire.Strings[string](kinds)}, wire.Lines)
}

func (s *session) Children(ctx context.Context, path string) ([]string, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	return read(ctx, recipe{s: s, what: "children of " + path}, s.contenders.Children,
		&pb.ChildrenRequest{Session: s.handle, Path: path}, (*pb.ChildrenResponse).GetNames)
}

// line returns the contenders of one kind at the path, in the recipe's dialect.
func (r recipe) line(ctx context.Context, kind recipes.Kind) ([]recipes.Contender, error) {
	return read(ctx, r.about("contenders at "+r.path), r.s.contenders.Contenders, &pb.ContendersRequest{
		Session: r.s.handle, Path: r.path, Kinds: []string{string(kind)}, Dialect: cmp.Or(r.dialect, string(recipes.ZooKeeper)),
	}, func(a *pb.ContendersResponse) []recipes.Contender {
		return wire.Each(a.GetContenders(), wire.Contender)
	})
}

// watch opens a stream whose first message is the current value. It returns a channel that
// delivers that value and then the latest of the following ones. It reads without waiting for
// the application, so a slow reader gets the latest value. If the plugin ends and the session
// continues, watch opens another stream, whose first value is delivered only if it differs.
// The channel is closed when ctx ends or the session is lost.
func watch[M, T any](ctx context.Context, s *session, what string,
	open func(context.Context) (grpc.ServerStreamingClient[M], error), value func(*M) T) (<-chan T, error) {
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	watching, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, cancel)
	end := func() { stop(); cancel() }

	w := &watcher[M]{s: s, open: open}
	if err := w.begin(watching); err != nil {
		end()
		return nil, s.explain(ctx, what, err)
	}
	values := feed.New(value(w.last))
	if !s.spawn(func() {
		defer end()
		for w.next(watching) {
			values.Set(value(w.last))
		}
		// The loss of the session may have ended this stream, but the session's stream reports
		// it. A reader calls Session.Err at the end of the watch. Without this wait, Err could
		// still be nil.
		s.linger(watching, verdictTimeout)
	}) {
		end()
		return nil, fmt.Errorf("%s: %w", what, s.Err())
	}
	return values.Watch(watching), nil
}

// watcher reads a stream, and opens another one when its plugin has ended.
type watcher[M any] struct {
	s    *session
	open func(context.Context) (grpc.ServerStreamingClient[M], error)

	in     *generation
	stream grpc.ServerStreamingClient[M]
	last   *M // the last message read
}

// begin opens a stream and reads its first message.
func (w *watcher[M]) begin(ctx context.Context) error {
	for {
		t, err := w.s.enter(ctx, callOptions{})
		if err != nil {
			return err
		}
		st, err := w.open(t.plugin.to(ctx))
		var first *M
		if err == nil {
			first, err = st.Recv()
		}
		if err == nil {
			w.in, w.stream, w.last = t, st, first
			return nil
		}
		if !w.s.outlived(ctx, t, err) {
			return err
		}
	}
}

// next reads the next message. It returns false at the end of the stream.
func (w *watcher[M]) next(ctx context.Context) bool {
	for {
		m, err := w.stream.Recv()
		if err == nil {
			w.last = m
			return true
		}
		before := w.last
		if !w.s.outlived(ctx, w.in, err) || w.begin(ctx) != nil {
			return false
		}
		if !equal(before, w.last) {
			return true
		}
	}
}

func equal[M any](a, b *M) bool {
	x, ok := any(a).(proto.Message)
	return ok && proto.Equal(x, any(b).(proto.Message))
}
