package host_test

import (
	"crypto/tls"
	"os"
	"os/exec"
	"testing"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// TestOnlyThePluginsHostCanConnect: an older host, with go-plugin's AutoMTLS, can connect.
// Clients with no certificate or another one, even with the same name, are refused.
func TestOnlyThePluginsHostCanConnect(t *testing.T) {
	cmd := exec.Command(self(t))
	cmd.Env = append(os.Environ(), quickExit, roleEnv+"=plugin")
	older := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: handshake.Config(), VersionedPlugins: handshake.Host(), Cmd: cmd,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC}, AutoMTLS: true, Logger: hclog.NewNullLogger(),
	})
	defer older.Kill()
	protocol := must.Get(older.Client())(t)
	conn := must.Get(protocol.Dispense(handshake.Name))(t)
	if _, err := pb.NewPluginServiceClient(conn.(*grpc.ClientConn)).Info(ctx(t), &pb.InfoRequest{}); err != nil {
		t.Error(err)
	}

	another, _, err := handshake.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "another certificate": {another}} {
		for _, protocol := range []string{"h2", carry.Protocol} {
			addr := older.ReattachConfig().Addr
			c, err := tls.Dial(addr.Network(), addr.String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, Certificates: certificates})
			if err == nil { // in TLS 1.3 a client gets the refusal with its first read
				_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
				_, err = c.Read(make([]byte, 1))
				_ = c.Close()
			}
			if err == nil {
				t.Errorf("%s: connected with %s", name, protocol)
			}
		}
	}
}
