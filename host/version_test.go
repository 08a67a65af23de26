package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// some registers only some services: a plugin of another time.
type some struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(grpc.ServiceRegistrar)
}

func (s some) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error { s.register(g); return nil }

func (s some) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plugin uses nothing")
}

// only leaves out all other services.
type only struct {
	grpc.ServiceRegistrar
	names []string
}

func (o only) RegisterService(d *grpc.ServiceDesc, impl any) {
	if slices.Contains(o.names, strings.TrimPrefix(d.ServiceName, "zkrecipes.v1.")) {
		o.ServiceRegistrar.RegisterService(d, impl)
	}
}

// serveOlder is a plugin from before most of the recipes.
func serveOlder() {
	serveVersions(nil, func(g grpc.ServiceRegistrar) grpc.ServiceRegistrar {
		return only{g, []string{"PluginService", "SessionService", "GrantService", "LockService"}}
	}, 1)
}

// serveUnary is a plugin that has no connections for calls, and otherwise a present one.
func serveUnary() {
	s := server.New(server.Config{Open: new(fake.World).Open})
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake.Config(),
		VersionedPlugins: map[int]goplugin.PluginSet{1: {handshake.Name: some{register: s.Register}}},
		GRPCServer:       func(more []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(more, s.Options()...)...) },
	})
}

func all(g grpc.ServiceRegistrar) grpc.ServiceRegistrar { return g }

// serveVersions is a plugin that speaks these versions. Of the second one the
// first host knows nothing.
func serveVersions(opts []grpc.ServerOption, services func(grpc.ServiceRegistrar) grpc.ServiceRegistrar, versions ...int) {
	sets := map[int]goplugin.PluginSet{}
	for _, v := range versions {
		sets[v] = goplugin.PluginSet{handshake.Name: some{register: func(g grpc.ServiceRegistrar) {
			server.New(server.Config{Open: new(fake.World).Open, Version: "another"}).Register(services(g))
		}}}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake.Config(), VersionedPlugins: sets,
		GRPCServer: func(more []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(more, opts...)...) },
	})
}

func TestNewerPluginThatStillSpeaksTheOlderProtocol(t *testing.T) {
	p := launch(t, config(t, "newer plugin"))
	acquire(t, open(t, p, time.Minute))
	if info, err := p.Info(ctx(t)); err != nil || info.Version != "another" {
		t.Error(info, err)
	}
}

func TestPluginOfAnotherProtocolIsATypedError(t *testing.T) {
	_, err := host.Launch(ctx(t), config(t, "much newer plugin"))
	if !errors.Is(err, host.ErrVersion) || !strings.Contains(err.Error(), "it speaks protocol 2, this host 1") {
		t.Error(err)
	}
	if _, err := host.Launch(ctx(t), config(t, "noisy")); errors.Is(err, host.ErrVersion) {
		t.Errorf("what is no handshake is no version: %v", err)
	}
}

// TestNewerPluginSaysMore: fields, messages and reasons that this host does not
// know are left aside, and what it does know still means the same.
func TestNewerPluginSaysMore(t *testing.T) {
	p := launch(t, config(t, "newer plugin"))
	s := open(t, p, time.Minute)
	h := acquire(t, s)
	if h.Token() == 0 || s.State() != recipes.Connected {
		t.Error(h.Token(), s.State())
	}
	other := must.Get(open(t, p, time.Minute).Lock("/l", recipes.LockConfig{}))(t)
	if _, err := other.TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrContended) {
		t.Errorf("a reason more makes another error of it: %v", err)
	}
	must.Report(t, h.Release(ctx(t)))
}

// TestOlderPluginRefusesWhatItDoesNotKnow: a recipe that came later fails when
// it is used, at once, with an error that says so and names it, and what the
// plugin does know works.
func TestOlderPluginRefusesWhatItDoesNotKnow(t *testing.T) {
	p := launch(t, config(t, "older plugin"))
	s := open(t, p, time.Minute)
	acquire(t, s)
	e := must.Get(s.Election("/e", recipes.ElectionConfig{}))(t)
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	b := must.Get(s.Barrier("/b"))(t)
	c := must.Get(s.Counter("/c", recipes.CounterConfig{}))(t)
	for service, use := range map[string]func(context.Context) error{
		"ElectionService": func(ctx context.Context) error { _, err := e.Campaign(ctx, nil); return err },
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
		t.Error("the session did not survive it")
	}
}
