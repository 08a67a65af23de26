package client_test

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// spy counts the unary calls of a client and can lose an answer.
type spy struct {
	mu    sync.Mutex
	calls map[string]int
	after map[string]func() // called once when the server has answered; the answer is lost
}

func newSpy() *spy { return &spy{calls: map[string]int{}, after: map[string]func(){}} }

func (s *spy) option() grpc.DialOption { return grpc.WithUnaryInterceptor(s.intercept) }

func (s *spy) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := method[strings.LastIndexByte(method, '/')+1:]
	s.mu.Lock()
	s.calls[name]++
	lose := s.after[name]
	delete(s.after, name)
	s.mu.Unlock()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if lose != nil {
		lose()
		return status.Error(codes.Canceled, "the answer was lost")
	}
	return err
}

// loseAnswer loses the next answer to a call after running f.
func (s *spy) loseAnswer(name string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after[name] = f
}

func (s *spy) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

func (s *spy) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		n += c
	}
	return n
}
