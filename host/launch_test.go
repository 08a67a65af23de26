package host_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestCloseClosesTheSessionsAndEndsThePlugin(t *testing.T) {
	r := listen(t)
	p := launch(t, config(t, "plugin", r.env()))
	process := r.accept(t, "plugin")
	h := acquire(t, open(t, p, time.Minute))
	if h.Token() == 0 {
		t.Error("no token")
	}
	for range 2 {
		must.Report(t, p.Close(ctx(t)))
	}
	if !errors.Is(h.Err(), recipes.ErrClosed) {
		t.Error(h.Err())
	}
	if line := process.line(t); line != "closed" {
		t.Errorf("the plugin reports %q", line)
	}
	process.died(t)
	closes(t, "Exited", p.Exited())
	if _, err := p.Open(ctx(t), recipes.SessionConfig{Servers: []string{"server"}}); !errors.Is(err, recipes.ErrUnavailable) {
		t.Error(err)
	}
}

func TestChecksumMismatchRefusedBeforeStart(t *testing.T) {
	r := listen(t)
	for name, sum := range map[string]string{
		"wrong": strings.Repeat("0", 64), "short": "abcd", "not hexadecimal": strings.Repeat("z", 64),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, "plugin", r.env())
			cfg.Checksum = sum
			p, err := host.Launch(ctx(t), cfg)
			if !errors.Is(err, host.ErrChecksum) {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
	if r.acceptWithin(t, "plugin", brief) != nil {
		t.Error("a process was started")
	}

	f := must.Get(os.Open(self(t)))(t)
	defer f.Close()
	sum := sha256.New()
	must.Get(io.Copy(sum, f))(t)
	for range 2 { // go-plugin's own check can use its hash only once
		cfg := config(t, "plugin")
		cfg.Checksum = fmt.Sprintf("%X", sum.Sum(nil))
		launch(t, cfg)
	}
}

func TestAVariableWithoutANameIsRefused(t *testing.T) {
	for _, wrong := range []string{"", "=value", "NAME=\x00"} {
		cfg := config(t, "plugin")
		cfg.Env = append(cfg.Env, wrong)
		if _, err := host.Launch(ctx(t), cfg); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), "Config.Env") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestHostEnvironmentDoesNotLeak(t *testing.T) {
	t.Setenv("TEST_SECRET", "s3cret")
	t.Setenv("TEST_WANTED", "wanted")
	t.Setenv("ZKRECIPES_PLUGIN", "overridden")
	inherited := []string{"TMPDIR", "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ", "LANG", "LC_ALL", "GOMEMLIMIT", "GOMAXPROCS", "SYSTEMROOT", "WINDIR"}
	t.Setenv("GOMEMLIMIT", "1GiB")
	t.Setenv("GOMAXPROCS", "3")
	for _, name := range inherited {
		if os.Getenv(name) == "" {
			t.Setenv(name, os.TempDir())
		}
	}
	r := listen(t)
	_, err := host.Launch(ctx(t), config(t, "environment", r.env(), "TEST_WANTED", "TEST_SET=set", "TEST_MISSING"))
	if err == nil {
		t.Fatal("Launch accepted a program that is not a plugin")
	}
	got := map[string]string{}
	var all []string
	must.Do(t, json.Unmarshal([]byte(r.accept(t, "environment").first), &all))
	for _, e := range all {
		name, value, _ := strings.Cut(e, "=")
		got[name] = value
	}
	allowed := map[string]bool{roleEnv: true, "GORACE": true, reportEnv: true, "TEST_WANTED": true, "TEST_SET": true, "ZKRECIPES_PLUGIN": true}
	for _, name := range inherited {
		allowed[name] = true
		if got[name] != os.Getenv(name) {
			t.Errorf("%s=%q; want %q", name, got[name], os.Getenv(name))
		}
	}
	for name, value := range got {
		if !allowed[name] && !strings.HasPrefix(name, "PLUGIN_") {
			t.Errorf("leaked: %s=%s", name, value)
		}
	}
	if got["TEST_WANTED"] != "wanted" || got["TEST_SET"] != "set" || got["ZKRECIPES_PLUGIN"] == "overridden" {
		t.Errorf("%q", got)
	}
}

// logged is a logger's output that can be read at any time.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestHostileStderrDoesNotPanicTheHost(t *testing.T) {
	out := &logged{}
	cfg := config(t, "hostile")
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Debug})
	p := launch(t, cfg)
	acquire(t, open(t, p, time.Minute))
	must.Report(t, p.Close(ctx(t)))
	for _, want := range []string{"[WARN]  " /* of hclog */, "the last line", `stderr: {"@level":5`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestStartErrorContainsTheEndOfStderr(t *testing.T) {
	_, err := host.Launch(ctx(t), config(t, "dying"))
	if err == nil || !strings.Contains(err.Error(), "cannot find my\n\tconfiguration") {
		t.Error(err)
	}
}

func TestOutputBeforeTheHandshakeIsAnError(t *testing.T) {
	_, err := host.Launch(ctx(t), config(t, "noisy"))
	if err == nil || !strings.Contains(err.Error(), "hello from init") || errors.Is(err, host.ErrVersion) {
		t.Error(err)
	}
}

func TestMissingPluginIsAnErrorThatNamesIt(t *testing.T) {
	for _, path := range []string{"", "no-such-plugin", t.TempDir()} {
		if _, err := host.Launch(ctx(t), host.Config{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestStartIsBounded: one plugin does no handshake, and another does one and then never
// answers. go-plugin's Client has no deadline after the handshake, and holds its lock.
func TestStartIsBounded(t *testing.T) {
	for _, role := range []string{"silent", "mute"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := listen(t)
			cfg := config(t, role, r.env())
			var process *reporter
			for cfg.StartTimeout = time.Second; process == nil; { // a busy machine may not start it in time
				cfg.StartTimeout *= 2
				_, err := host.Launch(ctx(t), cfg)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprint("StartTimeout is ", cfg.StartTimeout)) {
					t.Fatal(err)
				}
				process = r.acceptWithin(t, role, brief)
			}
			process.died(t)
		})
	}
}

// TestLaunchEndsWithItsContext: the error says that the caller's context ended, and not that
// StartTimeout is too short. The log has no warning and no error, because this process killed
// the plugin.
func TestLaunchEndsWithItsContext(t *testing.T) {
	sum := must.Get(host.Checksum(self(t)))(t)
	for _, role := range []string{"silent", "mute"} {
		for _, why := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(role+", "+why.Error(), func(t *testing.T) {
				r := listen(t)
				c := ending{ctx(t), make(chan struct{}), why}
				cfg := config(t, role, r.env())
				cfg.Checksum = fmt.Sprintf("%x", sum)
				out := &logged{}
				cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Warn})
				result := begin(func() error { _, err := host.Launch(c, cfg); return err })
				process := r.accept(t, role)
				close(c.end)
				err := <-result
				if !errors.Is(err, why) || !strings.Contains(err.Error(), "the caller's context ended after ") || strings.Contains(err.Error(), "StartTimeout") {
					t.Error(err)
				}
				process.died(t)
				if got := out.String(); got != "" {
					t.Errorf("the log has:\n%s", got)
				}
			})
		}
	}
}

// TestAPluginThatEndsByItselfIsLogged: the host reports the exit as an error although it
// cleans up after the failed start.
func TestAPluginThatEndsByItselfIsLogged(t *testing.T) {
	out := &logged{}
	cfg := config(t, "dying")
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: out, Level: hclog.Warn})
	if _, err := host.Launch(ctx(t), cfg); err == nil {
		t.Error("launched")
	}
	if got := out.String(); !strings.Contains(got, "[ERROR] plugin process exited") || !strings.Contains(got, "exit status 3") {
		t.Errorf("the log has:\n%s", got)
	}
}

// ending is a context that the test ends with an error of its choice.
type ending struct {
	context.Context
	end chan struct{}
	why error
}

func (c ending) Done() <-chan struct{} { return c.end }

func (c ending) Err() error {
	select {
	case <-c.end:
		return c.why
	default:
		return nil
	}
}

func TestInProcessIsTheSameWithoutAProcess(t *testing.T) {
	p := inProcess(t)
	s := open(t, p, time.Minute)
	h := acquire(t, s)
	must.Report(t, h.Release(ctx(t)))
	held := acquire(t, s)
	if v, err := p.Version(ctx(t)); err != nil || v == "" {
		t.Error(v, err)
	}
	must.Report(t, p.Close(ctx(t)))
	closes(t, "Exited", p.Exited())
	if !errors.Is(held.Err(), recipes.ErrClosed) || !errors.Is(held.Err(), recipes.ErrNotHeld) {
		t.Error(held.Err())
	}
}
