package link_test

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// spy counts the unary calls of a client and can drop an answer.
type spy struct {
	mu      sync.Mutex
	calls   map[string]int
	after   map[string]func() error // called once when the server has answered; its result replaces the answer
	instead map[string]func() error // answers the next call, which is not sent
}

func newSpy() *spy {
	return &spy{calls: map[string]int{}, after: map[string]func() error{}, instead: map[string]func() error{}}
}

func (s *spy) option() grpc.DialOption { return grpc.WithUnaryInterceptor(s.intercept) }

func (s *spy) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := nameOf(method, req)
	s.mu.Lock()
	s.calls[name]++
	answer := s.after[name]
	delete(s.after, name)
	refuse := s.instead[name]
	delete(s.instead, name)
	s.mu.Unlock()
	if refuse != nil {
		return rpcwire.ToStatus(refuse())
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if answer != nil {
		return answer()
	}
	return err
}

// nameOf returns the name of a call: of the method and, for Acquire, of the recipe, as in "Acquire lock".
func nameOf(method string, req any) string {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if r, ok := req.(*pb.AcquireRequest); ok {
		m := r.ProtoReflect()
		name += " " + string(m.WhichOneof(m.Descriptor().Oneofs().ByName("recipe")).Name())
	}
	return name
}

// loseAnswer runs f and then drops the next answer to a call.
func (s *spy) loseAnswer(name string, f func()) {
	s.answer(name, func() error {
		f()
		return status.Error(codes.Canceled, "the answer was lost")
	})
}

// answer makes f give the next answer to a call.
func (s *spy) answer(name string, f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after[name] = f
}

// refuse makes f refuse the next call before it reaches the plugin.
func (s *spy) refuse(name string, f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead[name] = f
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
