package link

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/feed"
)

// Stream opens a stream whose first message is the current value. It returns a channel that
// delivers that value and then the latest of the following ones. It reads without waiting for
// the application, so a slow reader gets the latest value. If the plugin ends and the session
// continues, it opens another one, whose first value is delivered only if it differs.
// The channel is closed when ctx ends or the session is lost.
func Stream[Q, M, T any](ctx context.Context, s *Session, what string, open Method[Q, grpc.ServerStreamingClient[M]], request Q, value func(*M) T) (<-chan T, error) {
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	watching, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, cancel)
	end := func() { stop(); cancel() }

	w := &watcher[Q, M]{s: s, open: open, request: request}
	if err := w.openStream(watching); err != nil {
		end()
		return nil, s.explain(ctx, what, err)
	}
	values := feed.New(value(w.last))
	if !s.Spawn(func() {
		defer end()
		for w.next(watching) {
			values.Set(value(w.last))
		}
		// The loss of the session may have ended this stream, but the session's stream reports
		// it. A reader calls Session.Err at the end of the watch. Without this wait, Err could
		// still be nil.
		s.sleep(watching, causeTimeout)
	}) {
		end()
		return nil, fmt.Errorf("%s: %w", what, s.Err())
	}
	return values.Watch(watching), nil
}

// watcher reads a stream, and opens another one when its plugin has ended.
type watcher[Q, M any] struct {
	s       *Session
	open    Method[Q, grpc.ServerStreamingClient[M]]
	request Q

	in     *generation
	stream grpc.ServerStreamingClient[M]
	last   *M // the last message read
}

// openStream opens a stream and reads its first message.
func (w *watcher[Q, M]) openStream(ctx context.Context) error {
	for {
		gen, err := w.s.awaitGeneration(ctx, Options{})
		if err != nil {
			return err
		}
		st, err := w.open(gen.plugin.to(ctx), w.request)
		var first *M
		if err == nil {
			first, err = st.Recv()
		}
		if err == nil {
			w.in, w.stream, w.last = gen, st, first
			return nil
		}
		if !w.s.pluginEnded(ctx, gen, err) {
			return err
		}
	}
}

// next reads the next message. It returns false at the end of the stream.
func (w *watcher[Q, M]) next(ctx context.Context) bool {
	for {
		m, err := w.stream.Recv()
		if err == nil {
			w.last = m
			return true
		}
		before := w.last
		if !w.s.pluginEnded(ctx, w.in, err) || w.openStream(ctx) != nil {
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
