package host_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// The variables of the examples. The plugin is the test binary under another name.
var (
	servers              []string
	pluginPath, checksum string
)

// isExamplePlugin reports whether the test binary was started as pluginPath.
func isExamplePlugin() bool { return filepath.Base(os.Args[0]) == host.PluginName+".exe" }

// withExamples runs the tests with the server and the plugin of the examples.
type withExamples struct{ tests *testing.M }

func (w withExamples) Run() int {
	server, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	servers = []string{server.Addr()}

	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(self), "plugin") // on the same file system, for Link
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	pluginPath = filepath.Join(dir, host.PluginName+".exe") // Windows needs the suffix
	if err := os.Link(self, pluginPath); err != nil {
		log.Fatal(err)
	}
	sum, err := host.Checksum(pluginPath)
	if err != nil {
		log.Fatal(err)
	}
	checksum = fmt.Sprintf("%x", sum)
	return w.tests.Run()
}

// crashPlugin kills the plugin.
func crashPlugin(pid int) {
	process, err := os.FindProcess(pid)
	if err != nil {
		log.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		log.Fatal(err)
	}
	_ = process.Release()
}
