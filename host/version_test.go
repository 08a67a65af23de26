package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/plugin"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/fake"
	"github.com/zkrecipes/zkrecipes/plugin/rpc/server"
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

// without leaves out a service.
type without struct {
	grpc.ServiceRegistrar
	name string
}

func (w without) RegisterService(d *grpc.ServiceDesc, impl any) {
	if d.ServiceName != w.name {
		w.ServiceRegistrar.RegisterService(d, impl)
	}
}

// serveVersions is a plugin that speaks these versions. Of the second one the
// first host knows nothing.
func serveVersions(leaveOut string, versions ...int) {
	sets := map[int]goplugin.PluginSet{}
	for _, v := range versions {
		sets[v] = goplugin.PluginSet{plugin.Name: some{register: func(g grpc.ServiceRegistrar) {
			server.New(server.Config{Open: fake.New().Open, Version: "another"}).Register(without{g, leaveOut})
		}}}
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake(), VersionedPlugins: sets, GRPCServer: goplugin.DefaultGRPCServer,
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

// TestOlderPluginRefusesWhatItDoesNotKnow: a recipe that came later fails when
// it is used, with an error that names it, and what the plugin does know works.
// Info tells before.
func TestOlderPluginRefusesWhatItDoesNotKnow(t *testing.T) {
	p := launch(t, config(t, "older plugin"))
	s := open(t, p, time.Minute)
	acquire(t, s)
	e, err := s.Election("/e", recipes.ElectionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Leader(ctx(t))
	if !errors.Is(err, recipes.ErrInternal) || !strings.Contains(err.Error(), pb.ElectionService_ServiceDesc.ServiceName) {
		t.Errorf("%v", err)
	}
	if s.State() != recipes.Connected {
		t.Error("the session did not survive it")
	}
}
