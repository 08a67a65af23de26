package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/feed"
)

// watch opens a stream of the plugin's whose first message is the present value. It
// returns a channel that gives that value and then the latest of those that follow.
// It reads without waiting for the application, so a slow reader gets the latest
// value. The channel is closed when ctx ends or the session is lost.
func watch[M, T any](ctx context.Context, s *session, what string,
	open func(context.Context) (grpc.ServerStreamingClient[M], error), value func(*M) T) (<-chan T, error) {
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	watching, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.over, cancel)
	end := func() { stop(); cancel() }

	st, err := open(watching)
	var first *M
	if err == nil {
		first, err = st.Recv()
	}
	if err != nil {
		end()
		return nil, s.explain(ctx, what, err)
	}
	values := feed.New(value(first))
	if !s.spawn(func() {
		defer end()
		for m, err := st.Recv(); err == nil; m, err = st.Recv() {
			values.Set(value(m))
		}
		// The loss of the session, which may have ended it, comes on another stream.
		// A reader that has read the watch to its end asks Session.Err for it.
		// Otherwise the servers refuse to be read.
		s.linger(watching, verdictTimeout)
	}) {
		end()
		return nil, fmt.Errorf("%s: %w", what, s.Err())
	}
	return values.Watch(watching), nil
}
