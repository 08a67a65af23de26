// Command walk acquires one free lock for each folder, and writes into the folder which
// statements of this module ran:
//
//	walk direct|again|plugin FOLDER...
//
// With again, the session has locked each path before, so the path exists.
// It needs to be built with -cover. Its test counts the functions and files.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/coverage"

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
	if way == "plugin" {
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
		if way == "again" {
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
