package carry_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// deafHost is a host that has read the limits from its connection and reads nothing more.
type deafHost struct {
	*frames
	ended chan struct{} // closed when the plugin has closed the connection and its calls have ended
}

// newDeafHost needs a synctest bubble. A pipe buffers nothing: unread messages wait in the
// plugin.
func newDeafHost(t *testing.T, acquire func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error)) *deafHost {
	d := carry.NewDispatcher(carry.Config{})
	pb.RegisterGrantServiceServer(d, locks{acquire: acquire})
	host, plugin := net.Pipe()
	h := &deafHost{frames: newFrames(context.Background(), host), ended: make(chan struct{})}
	go func() { defer close(h.ended); d.ServeConn(context.Background(), plugin) }()
	t.Cleanup(func() { h.close(); <-h.ended })
	var m pb.CarryResponse
	if err := h.receive(&m); err != nil || m.GetLimits() == nil {
		t.Fatal(&m, err)
	}
	return h
}

// call makes n calls, with ids from id on.
func (h *deafHost) call(id, n int) error {
	var m pb.CarryRequest
	for i := range n {
		m.Calls = append(m.Calls, &pb.Call{Id: uint64(id + i), Method: "/zkrecipes.v1.GrantService/Acquire"})
	}
	return h.send(&m)
}

// The plugin stops reading even if the answers are small: failed and empty answers take
// memory too.
func TestHostThatDoesNotReadIsNotReadEither(t *testing.T) {
	const calls = 2*carry.MaxCalls + 16*256
	for name, err := range map[string]error{"empty": nil, "failed": status.Error(codes.NotFound, "no")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				made, ran := 0, make(chan struct{}, calls)
				h := newDeafHost(t, func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
					mu.Lock()
					defer mu.Unlock()
					made++
					ran <- struct{}{}
					return &pb.AcquireResponse{}, err
				})
				var sender sync.WaitGroup
				sender.Go(func() {
					for id := 1; id <= calls && h.call(id, 256) == nil; id += 256 {
						for range 256 { // on a busy machine, too many calls would run at once
							select {
							case <-ran:
							case <-h.ended:
								return
							}
						}
					}
				})
				synctest.Wait()
				mu.Lock()
				if made > 2*carry.MaxCalls || made < carry.MaxCalls/2 { // half of them ran when the limit was exceeded
					t.Errorf("the plugin has made %d calls, and no answer was read", made)
				}
				mu.Unlock()
				answered := 0
				for answered < calls { // the plugin reads again when the host reads
					var m pb.CarryResponse
					if err := h.receive(&m); err != nil {
						t.Fatal(answered, err)
					}
					answered += len(m.GetAnswers())
				}
				sender.Wait()
			})
		})
	}
}

// Running calls can have answers of any size. Those that still run are cancelled.
func TestConnectionEndsIfItsHostLeavesTooMuchUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		long := strings.Repeat("x", size)
		proceed := make(chan struct{})
		h := newDeafHost(t, func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			select {
			case <-proceed:
				return &pb.AcquireResponse{Grant: &pb.Grant{Znode: long}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		const enough = carry.MaxKept / size
		must.Do(t, h.call(1, enough+3))
		answer := func(n int) {
			for range n {
				proceed <- struct{}{}
			}
			synctest.Wait()
		}
		answer(enough - 1)
		select {
		case <-h.ended:
			t.Fatalf("%d MiB are not too much", enough-1)
		default:
		}
		answer(2)
		select {
		case <-h.ended:
		default:
			t.Errorf("%d MiB wait for a host that does not read", enough+1)
		}
	})
}

// A host that reads gets answers of any size, several at a time, and small ones between their parts. A
// list of many names must not end the connection, because the next call would list them again.
func TestAnswersLargerThanTheBoundPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const large, calls = 3, 200
		long := strings.Repeat("x", carry.MaxKept*2/3)
		var mu sync.Mutex
		made := 0
		h := newDeafHost(t, func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			if made++; made <= large {
				return &pb.AcquireResponse{Grant: &pb.Grant{Znode: long}}, nil
			}
			return &pb.AcquireResponse{}, nil
		})
		must.Do(t, h.call(1, large))
		synctest.Wait() // the large answers wait, or are ready to
		var sender sync.WaitGroup
		defer sender.Wait()
		sender.Go(func() { must.Report(t, h.call(large+1, calls-large)) }) // is read when less waits
		answered, bytes := 0, 0
		for answered < calls {
			var m pb.CarryResponse
			if err := h.receive(&m); err != nil {
				t.Fatalf("after %d answers and %d bytes: %v", answered, bytes, err)
			}
			for _, a := range m.GetAnswers() {
				bytes += len(a.GetPayload())
				if !a.GetMore() {
					answered++
				}
			}
		}
		if bytes < large*len(long) {
			t.Errorf("%d bytes have arrived", bytes)
		}
	})
}

// hooked calls wrote after each write, before the writer continues.
type hooked struct {
	net.Conn
	wrote func()
}

func (c hooked) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote()
	return n, err
}

// A host that has the answer may send another call at once. The plugin would refuse it if the first
// call still had its place.
func TestACallFreesItsPlaceBeforeItsAnswer(t *testing.T) {
	const calls = carry.MaxBytes / carry.MaxPayload
	payload, err := proto.Marshal(&pb.AcquireRequest{Data: make([]byte, carry.MaxPayload-4)})
	if err != nil || len(payload) != carry.MaxPayload {
		t.Fatalf("%d bytes, %v", len(payload), err)
	}
	started, ended, release := make(chan struct{}, calls+1), make(chan struct{}, calls+1), make(chan struct{})
	d := carry.NewDispatcher(carry.Config{})
	pb.RegisterGrantServiceServer(d, locks{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			ended <- struct{}{}
		}
		return &pb.AcquireResponse{}, nil
	}})
	call := func(id uint64) *pb.CarryRequest {
		return &pb.CarryRequest{Calls: []*pb.Call{{Id: id, Method: pb.GrantService_Acquire_FullMethodName, Payload: payload}}}
	}
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	host := newFrames(ctx, near)
	writes := 0
	conn := hooked{far, func() {
		if writes++; writes != 2 { // the limits come first, then the answer
			return
		}
		must.Report(t, host.send(call(calls+1))) // as soon as the host gets the answer
		select {
		case <-started:
		case <-ended: // the plugin has ended the connection
			t.Error("the call was refused")
		}
		cancel()
	}}
	served := make(chan struct{})
	go func() { defer close(served); d.ServeConn(ctx, conn) }()
	var limits, answer pb.CarryResponse
	if err := host.receive(&limits); err != nil || limits.GetLimits() == nil {
		t.Fatal(&limits, err)
	}
	for id := range uint64(calls) {
		must.Do(t, host.send(call(id+1)))
		<-started
	}
	release <- struct{}{}
	if err := host.receive(&answer); err != nil || len(answer.GetAnswers()) != 1 {
		t.Error(&answer, err)
	}
	<-served
}

// answer plays a plugin that answers the first message of calls.
func answer(f *frames, answers ...*pb.Answer) error {
	_ = f.Send(&pb.CarryResponse{Limits: wide})
	if _, err := f.Recv(); err != nil {
		return err
	}
	return f.Send(&pb.CarryResponse{Answers: answers})
}

// The plugin dies right after it has sent the part. A contender keeps its place in the next
// plugin only if the host knows the place.
func TestEarlyPartIsReadThoughThePluginDies(t *testing.T) {
	part := must.Get(proto.Marshal(placeAt(1)))(t)
	for range 30 {
		p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
			return answer(f, &pb.Answer{Id: 1, Payload: part, More: true})
		}})
		read := 0
		_, err := p.Acquire(carry.WithEarly(bounded(t), func(got proto.Message) {
			if proto.Equal(got, placeAt(1)) {
				read++
			}
		}), &pb.AcquireRequest{})
		if err == nil || read != 1 {
			t.Fatalf("read %d times, %v", read, err)
		}
	}
}

// The part and the answer are both there when the caller wakes. Conn reads the answer only if no
// interceptor has made it an error, so the part must have been read before.
func TestEarlyPartIsReadThoughTheAnswerHasCome(t *testing.T) {
	part := must.Get(proto.Marshal(placeAt(1)))(t)
	for range 30 {
		p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
			err := answer(f, &pb.Answer{Id: 1, Payload: part, More: true}, &pb.Answer{Id: 1})
			<-f.Context().Done()
			return err
		}})
		read := 0
		must.Get(p.Acquire(carry.WithEarly(bounded(t), func(proto.Message) { read++ }), &pb.AcquireRequest{}))(t)
		if read != 2 {
			t.Fatalf("read %d times; want the part and the answer", read)
		}
	}
}
