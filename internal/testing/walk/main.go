// Command walk acquires one free lock for each folder, and writes into the folder which
// statements of this module ran:
//
//	walk direct|again|plugin|"plugin again" FOLDER...
//
// With again, the session has locked each path before, so the path exists. The plugin is
// host.InProcess, which makes calls over gRPC. So the framing of package carry, which calls to
// a launched plugin run through, does not count.
// It needs to be built with -cover. Its test counts the functions and files.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"
	"strings"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, way string, folders []string) error {
	zk, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		return err
	}
	open := recipes.Opener(zookeeper.Open)
	if strings.HasPrefix(way, "plugin") {
		p, err := host.InProcess(zookeeper.Open)
		if err != nil {
			return err
		}
		open = p.Open
	}
	session, err := open(ctx, recipes.SessionConfig{Servers: []string{zk.Addr()}})
	if err != nil {
		return err
	}
	for i, folder := range append([]string{""}, folders...) { // the first lock prepares the session
		lock, err := session.Lock(fmt.Sprintf("/lock-%d", i), recipes.LockConfig{})
		if err != nil {
			return err
		}
		if strings.HasSuffix(way, "again") {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return err
			}
			if err := hold.Release(ctx); err != nil {
				return err
			}
		}
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if _, err := lock.Acquire(ctx); err != nil {
			return err
		}
		if folder == "" {
			continue
		}
		if err := coverage.WriteMetaDir(folder); err != nil {
			return err
		}
		if err := coverage.WriteCountersDir(folder); err != nil {
			return err
		}
	}
	return nil
}
