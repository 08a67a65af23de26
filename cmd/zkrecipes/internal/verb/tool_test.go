package verb

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// opened is a plugin that keeps the servers of each session.
type opened [][]string

func (o *opened) Close(context.Context) error { return nil }

func (o *opened) Open(_ context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	*o = append(*o, cfg.Servers)
	return openSession{}, nil
}

// An election with -again may outlive the servers with which it began.
func TestEachSessionHasTheServersOfTheFile(t *testing.T) {
	configure(t)
	t.Setenv("ZKRECIPES_SERVERS", "")
	file := filepath.Join(t.TempDir(), "config.hcl")
	t.Setenv("ZKRECIPES_CONFIG", file)
	sessions := &opened{}
	c := &connection{Tool: toolOf(func() Plugin { return sessions })}
	for _, content := range []string{`zookeeper { servers = ["a:1"] }`, `zookeeper { servers = ["b:1"] }`, `zookeeper {`} {
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
		must.Get(c.open(t.Context()))(t)
	}
	if want := (opened{{"a:1"}, {"b:1"}, {"b:1"}}); !slices.EqualFunc(*sessions, want, slices.Equal) {
		t.Errorf("sessions with %q; want %q", *sessions, want)
	}
	if log := c.Stderr.(*strings.Builder).String(); !strings.Contains(log, "the configuration cannot be read again") {
		t.Errorf("the log is %q", log)
	}
}
