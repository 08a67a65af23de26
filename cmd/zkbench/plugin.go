package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	pluginName = "zkrecipes-plugin"
	modulePath = "github.com/zkrecipes/zkrecipes"
)

// findPlugin returns the path of the plugin's executable: the one that was given, else
// one beside zkbench, else one on the PATH. Under `go run` there is nothing beside
// zkbench, so at last it builds one.
func findPlugin(ctx context.Context, given string, end *cleanup, say say) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := lookForPlugin()
	if err == nil {
		say("plugin: %s", path)
		return path, nil
	}
	if !inCheckout(ctx) {
		return "", fmt.Errorf("%w; give it with -plugin PATH, or install it with go install %s/cmd/%s@latest", err, modulePath, pluginName)
	}
	say("plugin: none found, building %s/cmd/%s", modulePath, pluginName)
	return buildPlugin(ctx, end)
}

func lookForPlugin() (string, error) {
	name := pluginName + exe()
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s beside zkbench and none on the PATH", name)
	}
	return path, nil
}

// inCheckout reports whether the working directory belongs to this module.
func inCheckout(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "list", "-m").Output()
	return err == nil && strings.TrimSpace(string(out)) == modulePath
}

// buildPlugin builds the plugin for this run.
func buildPlugin(ctx context.Context, end *cleanup) (string, error) {
	dir, err := os.MkdirTemp("", "zkbench-")
	if err != nil {
		return "", err
	}
	end.add(func() error { return os.RemoveAll(dir) })
	path := filepath.Join(dir, pluginName+exe())
	build := exec.CommandContext(ctx, "go", "build", "-o", path, modulePath+"/cmd/"+pluginName)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the plugin: %w", err), errors.New(string(out)))
	}
	return path, nil
}

// exe is how names of executables end.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
