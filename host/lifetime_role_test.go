package host_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// runOutlivedHost holds a lock through a supervised plugin, and starts a child that has the
// writing end of the plugin's Lifetime. It reports when another plugin has resumed the
// session.
func runOutlivedHost() {
	reader, writer, err := os.Pipe()
	check(err)
	ctx := context.Background()
	cfg := hostsPlugin("real plugin")
	cfg.Lifetime = reader
	p, err := host.Supervise(ctx, host.SupervisorConfig{Plugin: cfg})
	check(err)
	s := hostsSession(p.Open)
	h, err := lockOf(ctx, s)
	check(err)
	child := exec.Command(cfg.Path)
	child.Env = append(os.Environ(), quickExit, roleEnv+"=child")
	child.ExtraFiles = []*os.File{writer}
	stdout, err := child.StdoutPipe()
	check(err)
	check(child.Start())
	_, err = io.ReadFull(stdout, make([]byte, len(ready)))
	check(err)
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
	_, _ = conn.Read(make([]byte, 1)) // returns when the test ends, at the latest
}
