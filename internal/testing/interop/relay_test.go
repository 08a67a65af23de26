package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// relayEnv makes the test binary a relay.
const relayEnv = "ZKRECIPES_INTEROP_RELAY"

// serveRelay forwards to each of the servers, until its standard input ends.
func serveRelay(servers []string) {
	var addrs []string
	for _, server := range servers {
		r, err := relay.Listen([]string{server}, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		addrs = append(addrs, r.Addr())
	}
	fmt.Println(strings.Join(addrs, ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// throughProcess returns addresses at which another process forwards to the servers. A library that
// uses them passes two processes, as a plugin does, and nothing else is added.
func throughProcess(tb testing.TB, servers []string) []string {
	tb.Helper()
	cmd := exec.Command(must.Get(os.Executable())(tb), servers...)
	cmd.Env = append(os.Environ(), relayEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, stdout := must.Get(cmd.StdinPipe())(tb), must.Get(cmd.StdoutPipe())(tb)
	must.Do(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = stdin.Close()
		must.Report(tb, cmd.Wait())
	})
	line := must.Get(bufio.NewReader(stdout).ReadString('\n'))(tb)
	return strings.Split(strings.TrimSpace(line), ",")
}
