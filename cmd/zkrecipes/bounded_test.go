package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestConnectTimeoutBoundsWhatDoesNotWait: -try, and a request. A verb that waits for others
// waits for servers too.
func TestConnectTimeoutBoundsWhatDoesNotWait(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	for name, run := range map[string]func(*tool, *output) error{
		"try": func(tl *tool, out *output) error {
			return await(context.Background(), tl, out, patience{try: true}, func(context.Context, recipes.Session) (int, error) { return 0, nil }, func(int) error { return nil })
		},
		"request": func(tl *tool, out *output) error {
			return tl.once(context.Background(), out, func(context.Context, recipes.Session) error { return nil })
		},
		"wait": func(tl *tool, out *output) error {
			return await(context.Background(), tl, out, patience{}, func(context.Context, recipes.Session) (int, error) { return 0, nil }, func(int) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tl := newTool(&strings.Builder{}, &strings.Builder{})
				tl.connectTimeout = 5 * time.Second
				tl.launch = func(context.Context, host.Config) (launchedPlugin, error) {
					return &outage{time.Now().Add(time.Hour), make(chan struct{})}, nil
				}
				begun := time.Now()
				err := run(tl, &output{stdout: tl.stdout, stderr: tl.stderr})
				if took := time.Since(begun); name != "wait" && (err == nil || took != 5*time.Second) || name == "wait" && err != nil {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// TestEveryVerbHasATimeout.
func TestEveryVerbHasATimeout(t *testing.T) {
	for name, verb := range everyVerb(t) {
		for _, flag := range []string{"timeout", "connect-timeout"} {
			if verb.flagSet().Lookup(flag) == nil {
				t.Errorf("%s has no -%s", name, flag)
			}
		}
	}
}
