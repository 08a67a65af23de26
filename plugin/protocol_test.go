package plugin_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/handshake"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// The page for authors of hosts agrees with the code. Names on it are never removed.
func TestProtocolPageIsTrue(t *testing.T) {
	read := func(path string) string { return string(must.Get(os.ReadFile(path))(t)) }
	page, table := read("proto/PROTOCOL.md"), read("../internal/rpc/wire/errors.go")

	for _, kind := range regexp.MustCompile(`\{[\w.]+, "([A-Z_]+)", codes\.\w+\},\n`).FindAllStringSubmatch(table, -1) {
		if !strings.Contains(page, "\n| `"+kind[1]+"` | ") {
			t.Errorf("the page does not list the reason %s", kind[1])
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([A-Z_]+) \\|").FindAllStringSubmatch(page, -1)
	if len(rows) < 30 {
		t.Fatalf("%d reasons", len(rows))
	}
	for _, row := range rows {
		code := strings.ReplaceAll(row[2], "_", "")
		if !regexp.MustCompile(`(?i)"` + row[1] + `", codes\.` + code + `\}`).MatchString(table) {
			t.Errorf("%s with %s is not in the table of reasons", row[1], row[2])
		}
	}
	cookie := handshake.Config()
	for _, want := range []string{
		cookie.MagicCookieKey, cookie.MagicCookieValue, handshake.LogLevelEnv, handshake.LifetimeEnv, handshake.ReattachEnv,
		"1|<protocol version>|unix|",
		fmt.Sprintf("%d MiB", server.MaxMessage>>20), fmt.Sprintf("| %d sessions", server.MaxSessions),
		fmt.Sprintf("| %d grants", server.MaxGrants), fmt.Sprintf("%d streams", server.MaxWatches),
		fmt.Sprintf("%d calls, %d MiB of payloads, %d KiB of one", carry.MaxCalls, carry.MaxBytes>>20, carry.MaxPayload>>10),
		fmt.Sprintf("%d MiB of answers that wait", carry.MaxUnsent>>20), fmt.Sprintf("%d MiB of answers that wait, because", carry.MaxKept>>20),
		fmt.Sprintf("%d MiB that wait", server.MaxUnsent>>20), fmt.Sprintf("a request id | %d bytes", server.MaxRequestID),
		fmt.Sprintf("%d calls and streams", server.MaxCalls),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Every method of the released descriptors still exists, and the descriptors have every
// service. .ci/proto check compares fields and types.
func TestReleasedInterfaceIsServed(t *testing.T) {
	var released descriptorpb.FileDescriptorSet
	must.Do(t, proto.Unmarshal(must.Get(os.ReadFile("proto/released/v1.binpb"))(t), &released))
	g := grpc.NewServer()
	server.New(server.Config{}).Register(g)
	serves := g.GetServiceInfo()
	methods := 0
	for _, f := range released.GetFile() {
		for _, s := range f.GetService() {
			name := f.GetPackage() + "." + s.GetName()
			served := serves[name]
			delete(serves, name)
			for _, m := range s.GetMethod() {
				methods++
				if !slices.ContainsFunc(served.Methods, func(i grpc.MethodInfo) bool { return i.Name == m.GetName() }) {
					t.Errorf("%s/%s was released, and is not served", name, m.GetName())
				}
			}
		}
	}
	for name := range serves {
		t.Errorf("%s is served, and is not among the released: .ci/proto record", name)
	}
	if methods < 40 {
		t.Errorf("%d methods were released", methods)
	}
}
