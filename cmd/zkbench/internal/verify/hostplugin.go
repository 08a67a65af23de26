package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"path"
	"path/filepath"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/version"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// PluginVerb is the verb with which zkbench is started as the plugin of a host that is checked.
const PluginVerb = "verify-plugin"

// socketDirectory is the variable in which a host passes the directory for the socket.
const socketDirectory = "PLUGIN_UNIX_SOCKET_DIR"

// leaving bounds the end of a host program, and of its plugin process, when a part ends.
const leaving = 10 * time.Second

// servant is the plugin process of a host that is checked. It serves this build's recipes. It is
// not package plugin's Serve, because it controls the handshake and sees the messages.
type servant struct {
	control *rpc.Client
	orders  Orders
	quit    context.CancelFunc // see Quit
}

// ServePlugin is that process. dir is the directory of the checker's part.
func ServePlugin(ctx context.Context, dir string) error {
	control, err := rpc.Dial("unix", filepath.Join(dir, controlSocket))
	if err != nil {
		return fmt.Errorf("only zkbench verify -host starts this verb: %w", err)
	}
	ctx, quit := context.WithCancel(ctx)
	p := &servant{control: control, quit: quit}
	env := map[string]string{}
	cookie := handshake.Config()
	for _, name := range []string{cookie.MagicCookieKey, versionsEnv, socketDirectory, handshake.CertificateEnv} {
		env[name] = os.Getenv(name)
	}
	if err := control.Call("Control.Launched", Launch{PID: os.Getpid(), Env: env}, &p.orders); err != nil {
		return err
	}
	part := control.Go("Control.Wait", 0, new(bool), nil)
	go func() { // ends with the process
		<-part.Done
		os.Exit(0)
	}()
	if env[cookie.MagicCookieKey] != cookie.MagicCookieValue {
		return fmt.Errorf("%s is not %s", cookie.MagicCookieKey, cookie.MagicCookieValue)
	}
	transport, printed, err := p.transport(env[handshake.CertificateEnv])
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", filepath.Join(env[socketDirectory], fmt.Sprint("plugin", os.Getpid())))
	if err != nil {
		return err
	}
	srv := server.New(server.Config{
		Open: zookeeper.Open, Resume: zookeeper.Resume, Version: version.String(), Build: version.Build(), Intercept: p.call,
	})
	g := grpc.NewServer(append(srv.Options(), grpc.ChainStreamInterceptor(p.stream),
		grpc.Creds(server.Connections(transport, func(c net.Conn) { srv.ServeCalls(ctx, c) })))...)
	srv.Register(g)
	go func() { _ = g.Serve(l) }() // until Stop
	if p.orders.Newer {
		fmt.Fprintln(os.Stderr, "this line of the log is not JSON")
	}
	fmt.Printf("1|%d|unix|%s|grpc|%s\n", p.orders.Version, l.Addr(), printed)
	select {
	case <-srv.Orphaned():
		if p.saw("Leave", false, &pb.InfoRequest{}) == Hang {
			select {} // until the host kills it, or the part ends
		}
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_ = srv.Close(closing) // the timeout ends the rest
	g.Stop()
	return nil
}

// versionsEnv is the variable with the versions that a host supports.
const versionsEnv = "PLUGIN_PROTOCOL_VERSIONS"

func (p *servant) transport(host string) (_ credentials.TransportCredentials, printed string, _ error) {
	if host == "" {
		return insecure.NewCredentials(), "", nil
	}
	hosts := x509.NewCertPool()
	if !hosts.AppendCertsFromPEM([]byte(host)) {
		return nil, "", fmt.Errorf("there is no certificate in PEM in %s", handshake.CertificateEnv)
	}
	used, _, err := handshake.NewCertificate()
	if err != nil {
		return nil, "", err
	}
	shown := used
	if p.orders.OtherCertificate {
		if shown, _, err = handshake.NewCertificate(); err != nil {
			return nil, "", err
		}
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{used}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: hosts,
		NextProtos: []string{carry.Protocol}, MinVersion: tls.VersionTLS12,
	}
	return credentials.NewTLS(config), base64.RawStdEncoding.EncodeToString(shown.Certificate[0]), nil
}

// saw reports an event, and returns the verdict. Without the checker the process ends.
func (p *servant) saw(name string, sent bool, m proto.Message) (v Verdict) {
	any, err := anypb.New(m)
	var message []byte
	if err == nil {
		message, err = proto.Marshal(any)
	}
	if err == nil {
		err = p.control.Call("Control.Saw", Event{os.Getpid(), name, sent, message}, &v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the checker does not answer:", err)
		os.Exit(1)
	}
	return v
}

func (p *servant) call(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	v := p.saw(path.Base(info.FullMethod), false, r.(proto.Message))
	switch v {
	case Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case Refuse:
		return nil, status.Error(codes.Unavailable, "a fault of zkbench verify")
	case Rename:
		return nil, renamed()
	case Lose:
		_, err := handle(context.WithoutCancel(ctx), r)
		<-ctx.Done()
		return nil, errors.Join(err, ctx.Err())
	}
	answer, err := handle(ctx, r)
	switch {
	case v == Die:
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err == nil {
			select {}
		}
		return nil, err
	case v == Doubt && err == nil:
		return nil, fmt.Errorf("%w: a fault of zkbench verify", recipes.ErrUnknownOutcome)
	case err == nil && p.orders.Newer:
		answer = extended(answer.(proto.Message))
	}
	return answer, err
}

// renamed is the error of a newer plugin, whose most specific reason is new.
func renamed() error {
	s := status.New(codes.FailedPrecondition, "held by another contender: a fault of zkbench verify")
	s, err := s.WithDetails(&errdetails.ErrorInfo{
		Domain: wire.Domain, Reason: "NEWER_REASON", Metadata: map[string]string{"reasons": "NEWER_REASON,CONTENDED"},
	})
	if err != nil { // impossible: the message marshals
		return err
	}
	return s.Err()
}

// unknownField is a field that no message has.
var unknownField = protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 1)

// extended returns what a newer plugin would send in place of m.
func extended(m proto.Message) proto.Message {
	m = proto.Clone(m)
	m.ProtoReflect().SetUnknown(unknownField)
	if info, ok := m.(*pb.InfoResponse); ok {
		info.Capabilities = append(info.Capabilities, "newer-capability")
	}
	return m
}

func (p *servant) stream(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(st.Context())
	defer cancel()
	s := &seenStream{ServerStream: st, servant: p, method: path.Base(info.FullMethod), ctx: ctx, cut: cancel}
	err := handle(srv, s)
	if ctx.Err() != nil && st.Context().Err() == nil {
		return status.Error(codes.Unavailable, "a fault of zkbench verify")
	}
	return err
}

// seenStream is a stream whose messages the checker sees.
type seenStream struct {
	grpc.ServerStream
	*servant
	method string
	ctx    context.Context
	cut    context.CancelFunc // see Cut
}

func (s *seenStream) Context() context.Context { return s.ctx }

func (s *seenStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	name := s.method
	if r, ok := m.(*pb.OpenRequest); ok && r.GetBeat() != nil {
		name = "Beat"
	}
	switch s.saw(name, false, m.(proto.Message)) {
	case Hang:
		<-s.ctx.Done()
		return s.ctx.Err()
	case Cut:
		s.cut()
		return io.ErrUnexpectedEOF
	case Quit:
		s.quit()
	}
	return nil
}

func (s *seenStream) SendMsg(m any) error {
	if s.saw(s.method, true, m.(proto.Message)) == Hang || s.ctx.Err() != nil {
		return nil
	}
	if !s.orders.Newer {
		return s.ServerStream.SendMsg(m)
	}
	if err := s.ServerStream.SendMsg(extended(m.(proto.Message))); err != nil {
		return err
	}
	if r, ok := m.(*pb.OpenResponse); !ok || r.GetOpened() == nil {
		return nil
	}
	unknownState := &pb.OpenResponse{Message: &pb.OpenResponse_StateChanged{StateChanged: &pb.StateChanged{State: 99}}}
	return errors.Join(s.ServerStream.SendMsg(extended(&pb.OpenResponse{})), s.ServerStream.SendMsg(unknownState))
}
