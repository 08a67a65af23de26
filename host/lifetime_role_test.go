package host_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// runOutlivedHost holds a lock through a supervised plugin, and has started a child that
// the plugin's pipe knows. It reports when the session is served by another plugin.
func runOutlivedHost() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	self, err := os.Executable()
	must(err)
	reader, writer, err := os.Pipe()
	must(err)
	ctx := context.Background()
	timeout, err := time.ParseDuration(os.Getenv("TEST_TIMEOUT"))
	must(err)
	p, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: host.Config{
		Path: self, Env: []string{roleEnv + "=real plugin", reportEnv, quickExit}, Lifetime: reader,
	}})
	must(err)
	s, err := p.Open(ctx, recipes.SessionConfig{Servers: []string{os.Getenv(serverEnv)}, SessionTimeout: timeout})
	must(err)
	h, err := lockOf(ctx, s)
	must(err)
	child := exec.Command(self)
	child.Env = append(os.Environ(), quickExit, roleEnv+"=child")
	child.ExtraFiles = []*os.File{writer}
	said, err := child.StdoutPipe()
	must(err)
	must(child.Start())
	_, err = io.ReadFull(said, make([]byte, len(ready)))
	must(err)
	conn := report("host")
	suspended := false
	for e := range s.Events(ctx) {
		switch {
		case e.State == recipes.Suspended:
			suspended = true
		case e.State == recipes.Connected && suspended:
			_, _ = conn.Write([]byte("resumed\n"))
		}
	}
	runtime.KeepAlive(h)
}

const ready = "ready\n"

// runChild runs until it is killed.
func runChild() {
	conn := report("child", fmt.Sprint(os.Getpid()))
	fmt.Print(ready)
	_, _ = conn.Read(make([]byte, 1)) // to the test's end, at the latest
}
