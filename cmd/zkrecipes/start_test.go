package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// BenchmarkLockCommand measures `zkrecipes lock PATH -- true` and each of its parts, with
// binaries that are built as for a release.
func BenchmarkLockCommand(b *testing.B) {
	dir := b.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/", "../zkrecipes", "../zkrecipes-plugin")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	tool, plugin := filepath.Join(dir, "zkrecipes"), filepath.Join(dir, "zkrecipes-plugin")
	server := ensembletest.Start(b, ensembletest.Quick(1)).Connect()
	for _, command := range []struct {
		name string
		args []string
	}{
		{"command=true", []string{"true"}},
		{"command=tool", []string{tool, "version"}},
		{"command=plugin", []string{plugin, "version"}},
		{"command=lock", []string{tool, "lock", "-servers", server, "/start", "--", "true"}},
	} {
		b.Run(command.name, func(b *testing.B) {
			var p parts
			var used time.Duration
			for b.Loop() {
				p.of("p50", func() error {
					cmd := exec.Command(command.args[0], command.args[1:]...)
					out, err := cmd.CombinedOutput()
					if err != nil {
						return fmt.Errorf("%w: %s", err, out)
					}
					used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // with the plugin's
					return nil
				})
			}
			p.report(b)
			b.ReportMetric(float64(used)/float64(b.N)/float64(time.Millisecond), "cpu-ms")
		})
	}
	b.Run("parts", func(b *testing.B) {
		var p parts
		for b.Loop() {
			p.lock(b, plugin, server)
		}
		p.report(b)
	})
}

// lock does the same work as the command, and records the time of each part.
func (p *parts) lock(b *testing.B, path, server string) {
	ctx := b.Context()
	var launched *host.Plugin
	var s recipes.Client
	var l recipes.Lock
	var h recipes.Hold
	p.of("launch", func() (err error) {
		launched, err = host.Launch(ctx, host.Config{Path: path, Logger: hclog.NewNullLogger()})
		return err
	})
	p.of("session", func() (err error) {
		s, err = launched.Open(ctx, recipes.SessionConfig{Servers: []string{server}})
		return err
	})
	p.of("lock", func() (err error) {
		if l, err = s.Lock("/start", recipes.LockConfig{}); err == nil {
			h, err = l.Acquire(ctx)
		}
		return err
	})
	p.of("release", func() error { return h.Release(ctx) })
	p.of("close", func() error { return s.Close(ctx) })
	p.of("exit", func() error { return launched.Close(context.Background()) })
	if p.err != nil {
		b.Fatal(p.err)
	}
}

// parts records how long each part of a command took, in each run.
type parts struct {
	took map[string][]time.Duration
	err  error // the first one
}

func (p *parts) of(name string, do func() error) {
	if p.err != nil {
		return
	}
	start := time.Now()
	p.err = do()
	if p.took == nil {
		p.took = make(map[string][]time.Duration)
	}
	p.took[name] = append(p.took[name], time.Since(start))
}

// report reports the median of each part in milliseconds.
func (p *parts) report(b *testing.B) {
	if p.err != nil {
		b.Fatal(p.err)
	}
	for name, took := range p.took {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/float64(time.Millisecond), name+"-ms")
	}
}
