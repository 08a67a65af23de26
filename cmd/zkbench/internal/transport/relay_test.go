package transport

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// However zkbench ends, its end of the pipe closes.
func TestARelayEndsWithItsParent(t *testing.T) {
	srv := zktest.Embedded(t)
	stdin, life := io.Pipe()
	said, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- ServeRelay(stdout, stdin, []string{srv.Addr(), srv.Addr()}) }()
	line := must.Get(bufio.NewReader(said).ReadString('\n'))(t)
	addrs := strings.Split(strings.TrimSpace(line), ",")
	if len(addrs) != 2 || addrs[0] == addrs[1] {
		t.Fatalf("relays at %q; want one for each server", addrs)
	}
	conn := must.Get(net.Dial("tcp", addrs[1]))(t)
	defer conn.Close()
	if _, err := conn.Write([]byte("ruok")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(io.LimitReader(conn, 4)); err != nil || string(answer) != "imok" {
		t.Errorf("through the relay: %q, %v", answer, err)
	}
	life.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, addr := range addrs {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s still answers", addr)
		}
	}
}

func TestRelaysToSeveralHostsNeedANameForTheirCertificates(t *testing.T) {
	_, err := launchRelay(t.Context(), "", recipes.SessionConfig{
		Servers: []string{"zk1.example:2281", "zk2.example:2281"}, TLS: &recipes.TLS{},
	}, new(exit.Cleanup), nil)
	if err == nil || !strings.Contains(err.Error(), "-tls-server-name") {
		t.Errorf("%v; want an error that names the flags to give", err)
	}
}
