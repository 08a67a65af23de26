package carry

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// Config configures a Dispatcher.
type Config struct {
	// Intercept is called for every call, like a gRPC server's interceptor. nil does nothing.
	Intercept grpc.UnaryServerInterceptor
	// Stats gets what a gRPC server would report to it. It may be nil.
	Stats stats.Handler
	// Message is the size of the largest message that the gRPC server accepts, in bytes. 0 is
	// gRPC's default.
	Message int
}

// Dispatcher is the plugin's end: it registers services and makes the calls of their unary
// methods.
type Dispatcher struct {
	cfg     Config
	limits  *pb.Limits
	methods map[string]method
}

type method struct {
	service any
	grpc.MethodDesc
}

// NewDispatcher returns a Dispatcher without services. Register them before it serves.
func NewDispatcher(cfg Config) *Dispatcher {
	return &Dispatcher{cfg: cfg, limits: within(cfg.Message), methods: make(map[string]method)}
}

// RegisterService adds a service. It implements grpc.ServiceRegistrar.
func (d *Dispatcher) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		d.methods["/"+desc.ServiceName+"/"+m.MethodName] = method{service, m}
	}
}

// call makes one call and returns the response message or the error, as a gRPC server
// would send them.
func (d *Dispatcher) call(ctx context.Context, c *pb.Call) ([]byte, error) {
	m, ok := d.methods[c.GetMethod()]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %q", c.GetMethod()) // newer than the plugin
	}
	if len(c.GetMetadata()) > 0 {
		ctx = metadata.NewIncomingContext(ctx, metadata.New(c.GetMetadata()))
	}
	if d.cfg.Stats == nil {
		return d.answer(ctx, m, c.GetPayload())
	}
	return d.measured(ctx, m, c)
}

func (d *Dispatcher) answer(ctx context.Context, m method, payload []byte) ([]byte, error) {
	decode := func(request any) error {
		if err := proto.Unmarshal(payload, request.(proto.Message)); err != nil {
			return status.Errorf(codes.Internal, "unmarshalling the request: %v", err)
		}
		return nil
	}
	response, err := m.Handler(m.service, ctx, decode, d.cfg.Intercept)
	if err != nil {
		return nil, err
	}
	b, err := proto.Marshal(response.(proto.Message))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "marshalling the response: %v", err)
	}
	return b, nil
}

// measured calls answer, and reports the call to Stats.
func (d *Dispatcher) measured(ctx context.Context, m method, c *pb.Call) (answer []byte, err error) {
	h, began := d.cfg.Stats, time.Now()
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: c.GetMethod()})
	h.HandleRPC(ctx, &stats.Begin{BeginTime: began})
	h.HandleRPC(ctx, &stats.InPayload{RecvTime: began, Length: len(c.GetPayload())})
	answer, err = d.answer(ctx, m, c.GetPayload())
	ended := time.Now()
	if err == nil {
		h.HandleRPC(ctx, &stats.OutPayload{SentTime: ended, Length: len(answer)})
	}
	h.HandleRPC(ctx, &stats.End{BeginTime: began, EndTime: ended, Error: err})
	return answer, err
}
