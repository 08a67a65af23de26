package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

func TestDescribePrintsJSON(t *testing.T) {
	cmd := exec.Command(os.Args[0], "describe")
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	out := must.Get(cmd.Output())(t)
	var d description
	must.Do(t, json.Unmarshal(out, &d))
	if !slices.Contains(d.Capabilities, "lock") || !slices.Contains(d.ProtocolVersions, handshake.Version) || d.Version == "" || d.Platform == "" {
		t.Errorf("%s", out)
	}
}

// debugged starts the plugin as for a debugger, and returns its printed address.
func debugged(t *testing.T) handshake.Reattach {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-debug")
	cmd.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+t.TempDir())
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("after an interrupt it ends with %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "export "+handshake.ReattachEnv+"="); ok {
			return must.Get(handshake.ParseReattach(strings.Trim(value, "'")))(t)
		}
	}
	t.Fatal("nothing was printed")
	panic("unreachable")
}

// grpcurl and similar tools need reflection and the health service.
func TestHealthAndReflectionAreServed(t *testing.T) {
	r := debugged(t)
	target := r.Address
	if r.Network == "unix" {
		target = "unix:" + target
	}
	conn := must.Get(grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	h, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", h, err)
	}
	st := must.Get(grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx))(t)
	must.Do(t, st.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}))
	answer := must.Get(st.Recv())(t)
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"zkrecipes.v1.PluginService", "zkrecipes.v1.SessionService", "zkrecipes.v1.GrantService"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

// No host would have the plugin's certificate.
func TestDebuggingWithAutoMTLSIsRefused(t *testing.T) {
	var stderr strings.Builder
	cmd := exec.Command(os.Args[0], "-debug")
	cmd.Env = append(os.Environ(), mainEnv+"=1", "PLUGIN_CLIENT_CERT=x")
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "cannot use AutoMTLS") {
		t.Errorf("%v, %s", err, stderr.String())
	}
}
