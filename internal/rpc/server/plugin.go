package server

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// Attached is closed when a host has attached for the first time.
func (s *Server) Attached() <-chan struct{} { return s.attached.Done() }

// Orphaned is closed when the last attached host has disconnected or died. With
// Config.Lifetime the last session must have ended too.
func (s *Server) Orphaned() <-chan struct{} { return s.orphaned.Done() }

func (s service) Attach(_ *pb.AttachRequest, st grpc.ServerStreamingServer[pb.AttachResponse]) error {
	s.addHost()
	defer s.removeHost()
	if err := st.Send(&pb.AttachResponse{}); err != nil {
		return err
	}
	<-st.Context().Done()
	return nil
}

func (s *Server) addHost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts++
	s.attach()
}

func (s *Server) removeHost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts--
	s.orphanIfAlone()
}

// orphanIfAlone ends orphaned if no host is attached any more and, with Config.Lifetime, no session
// is left. A session may end before the first Attach. The caller holds mu.
func (s *Server) orphanIfAlone() {
	if s.attached.Err() != nil && s.hosts == 0 && (s.cfg.Lifetime == nil || len(s.sessions) == 0) {
		s.orphan()
	}
}

func (s service) Shutdown(ctx context.Context, _ *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
	return &pb.ShutdownResponse{}, s.Server.Close(ctx)
}

func (s service) Info(context.Context, *pb.InfoRequest) (*pb.InfoResponse, error) {
	return &pb.InfoResponse{Version: s.cfg.Version, Build: s.cfg.Build, Capabilities: s.cfg.Capabilities()}, nil
}

// capabilities are the names in Info: of the recipes, and of what a plugin may lack. Those of the
// recipes that make grants are the cases of AcquireRequest.
var capabilities = append(grantCapabilities(), "priority-queue", "transaction", "barrier", "configuration", "counter", "latch",
	"contenders", carry.Capability, resumeCapability)

func grantCapabilities() (names []string) {
	cases := new(pb.AcquireRequest).ProtoReflect().Descriptor().Oneofs().ByName("recipe").Fields()
	for i := range cases.Len() {
		names = append(names, strings.ReplaceAll(string(cases.Get(i).Name()), "_", "-"))
	}
	return names
}

// resumeCapability is the capability of plugins that can resume sessions (Config.Resume).
const resumeCapability = "resume"

// Capabilities returns the names in Info: the capabilities of a Server with this
// configuration. Names are never removed.
func (c Config) Capabilities() []string {
	return slices.DeleteFunc(slices.Clone(capabilities), func(name string) bool { return name == resumeCapability && c.Resume == nil })
}
