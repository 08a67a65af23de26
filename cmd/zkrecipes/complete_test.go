package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// listed is a plugin whose servers list the same names below each path.
type listed struct {
	names  []string
	after  time.Duration // delay of an answer
	end    time.Duration // how long Close takes, even if its context ends earlier
	closed bool
}

func (l *listed) Close(context.Context) error { time.Sleep(l.end); l.closed = true; return nil }
func (l *listed) Open(context.Context, recipes.SessionConfig) (recipes.Client, error) {
	return listedSession{l: l}, nil
}

type listedSession struct {
	recipes.Client
	l *listed
}

func (s listedSession) Children(ctx context.Context, _ string) ([]string, error) {
	select {
	case <-time.After(s.l.after):
		return slices.Clone(s.l.names), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestPathIsCompletedFromTheServers: paths are completed only if the servers answer in time.
func TestPathIsCompletedFromTheServers(t *testing.T) {
	t.Setenv("ZKRECIPES_CONFIG", "")
	t.Setenv("HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("ZKRECIPES_SERVERS", "zk")
	for _, tt := range []struct {
		verb, line string
		after, end time.Duration
		want       []string
	}{
		{"lock", "-timeout 5s /a/b", 0, 0, []string{"/a/backups", "/a/builds"}},
		{"lock", "/a/", 0, 0, []string{"/a/backups", "/a/builds", "/a/other", "/a/zookeeper"}},
		{"queue take", "-servers zk1,zk2 /o", 0, 0, []string{"/other"}},
		{"lock", "/b", verb.CompletionTime / 2, 0, []string{"/backups", "/builds"}},
		{"lock", "/b", 2 * verb.CompletionTime, 0, nil},
		{"lock", "/b", 0, 2 * verb.CompletionTime, []string{"/backups", "/builds"}},
		{"lock", "/a -- /b", 0, 0, nil},    // a file
		{"config get", "/a /b", 0, 0, nil}, // a key
		{"lock", "b", 0, 0, nil},           // not a path
		{"lock", "-no-such-flag /b", 0, 0, nil},
		{"doctor", "/b", 0, 0, nil},
		{"lock", "/z", 0, 0, nil}, // /zookeeper belongs to ZooKeeper
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &listed{names: []string{"backups", "builds", "other", "_c_5e-lock-0000000003", "b-0000000003", "zookeeper"}, after: tt.after, end: tt.end}
			var said strings.Builder
			tl := verb.NewTool(&said, &said)
			tl.Launch = func(context.Context, host.Config) (verb.Plugin, error) { return p, nil }
			command := everyVerb()[tt.verb]
			command.Tool = tl
			words := strings.Fields(tt.line)
			begun := time.Now()
			var got []string
			if predict := command.Completion().Args; predict != nil {
				got = predict.Predict(complete.Args{Completed: words[:len(words)-1], Last: words[len(words)-1]})
			}
			if !slices.Equal(got, tt.want) || time.Since(begun) > verb.CompletionTime || said.Len() > 0 {
				t.Errorf("%s %s: %q after %v, want %q; it says %q", tt.verb, tt.line, got, time.Since(begun), tt.want, said.String())
			}
			time.Sleep(tt.end)
			synctest.Wait()
			if got != nil && !p.closed {
				t.Error("the plugin was not closed")
			}
		})
	}
}
