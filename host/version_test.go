package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// partialPlugin is a go-plugin plugin that registers only some services.
type partialPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(grpc.ServiceRegistrar)
}

func (s partialPlugin) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error {
	s.register(g)
	return nil
}

func (s partialPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin is not a host")
}

// serviceFilter is a registrar that skips all services except the named ones.
type serviceFilter struct {
	grpc.ServiceRegistrar
	names []string
}

func (f serviceFilter) RegisterService(d *grpc.ServiceDesc, impl any) {
	if slices.Contains(f.names, strings.TrimPrefix(d.ServiceName, "zkrecipes.v1.")) {
		f.ServiceRegistrar.RegisterService(d, impl)
	}
}

// serveOlder is a plugin with few of the recipes. It grants only locks.
func serveOlder() {
	serveVersions([]grpc.ServerOption{grpc.UnaryInterceptor(knowsOnlyLocks)}, func(g grpc.ServiceRegistrar) grpc.ServiceRegistrar {
		return serviceFilter{g, []string{"PluginService", "SessionService", "GrantService"}}
	}, 1)
}

// knowsOnlyLocks turns every recipe except a lock into a field that the plugin does not know.
func knowsOnlyLocks(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if ask, ok := r.(*pb.AcquireRequest); ok && ask.GetLock() == nil {
		m := ask.ProtoReflect()
		recipe := m.WhichOneof(m.Descriptor().Oneofs().ByName("recipe"))
		ask.Recipe = nil
		m.SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, recipe.Number(), protowire.BytesType), nil))
	}
	answer, err := handle(ctx, r)
	return answer, wire.ToStatus(err)
}

// serveUnary is a current plugin without connections for calls.
func serveUnary() {
	s := server.New(server.Config{Open: opener(nil)})
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: map[int]goplugin.PluginSet{1: {handshake.Name: partialPlugin{register: s.Register}}},
		GRPCServer:       func(more []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(more, s.Options()...)...) },
	})
}

func everyService(g grpc.ServiceRegistrar) grpc.ServiceRegistrar { return g }

// serveVersions is a plugin that supports these protocol versions. This host supports only
// the first.
func serveVersions(opts []grpc.ServerOption, services func(grpc.ServiceRegistrar) grpc.ServiceRegistrar, versions ...int) {
	sets := map[int]goplugin.PluginSet{}
	for _, v := range versions {
		sets[v] = goplugin.PluginSet{handshake.Name: partialPlugin{register: func(g grpc.ServiceRegistrar) {
			server.New(server.Config{Open: opener(nil), Version: "another"}).Register(services(g))
		}}}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake.Config(), VersionedPlugins: sets,
		GRPCServer: func(more []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(more, opts...)...) },
	})
}

func TestPluginOfAnotherProtocolIsErrVersion(t *testing.T) {
	_, err := host.Launch(ctx(t), config(t, "much newer plugin"))
	if !errors.Is(err, host.ErrVersion) || !strings.Contains(err.Error(), "it has protocol version 2, this host 1") {
		t.Error(err)
	}
}

// TestNewerPluginUsesTheOlderProtocol: this host ignores unknown fields, messages and
// reasons. The known ones keep their meaning.
func TestNewerPluginUsesTheOlderProtocol(t *testing.T) {
	t.Parallel()
	p := launch(t, config(t, "newer plugin"))
	if info, err := p.Info(ctx(t)); err != nil || info.Version != "another" {
		t.Error(info, err)
	}
	s := open(t, p, time.Minute)
	h := acquire(t, s)
	if h.Token() == 0 || s.State() != recipes.Connected {
		t.Error(h.Token(), s.State())
	}
	other := must.Get(open(t, p, time.Minute).Lock("/l", recipes.LockConfig{}))(t)
	if _, err := other.TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
		t.Errorf("with an additional reason: %v", err)
	}
	must.Report(t, h.Release(ctx(t)))
}

// TestOlderPluginRefusesUnknownRecipes: the first call of a recipe that the plugin lacks
// fails at once, with an error that names it. The other recipes work.
func TestOlderPluginRefusesUnknownRecipes(t *testing.T) {
	t.Parallel()
	p := launch(t, config(t, "older plugin"))
	s := open(t, p, time.Minute)
	acquire(t, s)
	e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	b := must.Get(s.Barrier("/b"))(t)
	c := must.Get(s.Counter("/c", recipes.CounterConfig{}))(t)
	for service, use := range map[string]func(context.Context) error{
		"election /e":     func(ctx context.Context) error { _, err := e.Campaign(ctx, nil); return err },
		"ElectionService": func(ctx context.Context) error { _, err := e.Leader(ctx); return err },
		"QueueService":    func(ctx context.Context) error { _, err := q.Put(ctx, nil); return err },
		"BarrierService":  b.Wait,
		"CounterService":  func(ctx context.Context) error { _, err := c.Add(ctx, 1); return err },
	} {
		err := use(ctx(t))
		if !errors.Is(err, recipes.ErrUnsupported) || errors.Is(err, recipes.ErrInternal) || errors.Is(err, recipes.ErrUnknownOutcome) ||
			!strings.Contains(err.Error(), service) {
			t.Errorf("%s: %v", service, err)
		}
	}
	if _, err := e.Observe(ctx(t)); !errors.Is(err, recipes.ErrUnsupported) {
		t.Errorf("a stream: %v", err)
	}
	if s.State() != recipes.Connected {
		t.Error("the session was lost")
	}
}

// additions make a plugin send what this host does not know: a field in every message, a
// message on every session's stream, and a reason that comes first in every error.
func additions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(addToAnswer),
		grpc.ChainStreamInterceptor(func(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, &addingStream{ServerStream: st})
		}),
	}
}

func addToAnswer(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, r)
	if err != nil {
		return nil, addReason(wire.ToStatus(err))
	}
	addField(answer)
	return answer, nil
}

type addingStream struct {
	grpc.ServerStream
	opened bool
}

func (s *addingStream) SendMsg(m any) error {
	addField(m)
	err := s.ServerStream.SendMsg(m)
	if _, ok := m.(*pb.OpenResponse); ok && err == nil && !s.opened {
		s.opened = true
		unknown := &pb.OpenResponse{}
		addField(unknown)
		return s.ServerStream.SendMsg(unknown)
	}
	return err
}

// addField adds a field with an unused number.
func addField(m any) {
	field := protowire.AppendTag(nil, 1000, protowire.BytesType)
	m.(proto.Message).ProtoReflect().SetUnknown(protowire.AppendString(field, "unknown"))
}

func addReason(err error) error {
	s := status.Convert(err)
	var details []protoadapt.MessageV1
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			info.Metadata["reasons"] = "UNKNOWN_TO_HOST," + info.Metadata["reasons"]
			info.Reason = "UNKNOWN_TO_HOST"
		}
		details = append(details, protoadapt.MessageV1Of(d.(proto.Message)))
	}
	s, werr := status.New(s.Code(), s.Message()).WithDetails(details...)
	if werr != nil {
		return werr
	}
	return s.Err()
}
