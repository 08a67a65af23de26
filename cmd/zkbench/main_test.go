package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	plugins "github.com/zkrecipes/zkrecipes/plugin"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestMain(m *testing.M) {
	testscript.Main(leaktest.Checked{Tests: leaktest.SideBySide{Tests: ensembletest.Owner{Tests: m}}}, map[string]func(){
		// A busy machine does not make the trials of scripts invalid.
		"zkbench": func() {
			os.Exit(command{stdout: os.Stdout, stderr: os.Stderr, transports: transport.All, terminal: terminalWidth, check: allValid}.process())
		},
		"zkbench-build": buildMain,
		"audit-holds": func() {
			if _, err := writeAudit(os.Stdout, os.Args[1]); err != nil {
				panic(err)
			}
		},
		"plugin-of-the-test": func() { plugins.Serve(zookeeper.Open) },
		"defective-plugin":   serveDefective,
		"host-of-the-test":   runHost,
		// Programs that wait for a command's first result, and then signal it.
		"interrupt-at-first-result": func() { os.Exit(interruptAtFirstResult(os.Args[1:])) },
		"hangup-at-first-result": func() {
			// It must not matter whether the test itself runs under nohup.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
			os.Exit(hangupAtFirstResult(os.Args[1:]))
		},
		"nohup-hangup-at-first-result": func() {
			signal.Ignore(syscall.SIGHUP)
			os.Exit(hangupAtFirstResult(os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:       filepath.Join("testdata", "script"),
		Setup:     withGo,
		Condition: inTestAll,
	})
}

// inTestAll is the condition [test-all] of lines that only make test-all runs.
func inTestAll(condition string) (bool, error) {
	if condition != "test-all" {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	return testall.On(), nil
}

// withGo gives scripts the go command as $GO, the module as $TOP, and a built plugin as $PLUGIN.
func withGo(env *testscript.Env) error {
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	plugin, err := exec.LookPath("plugin-of-the-test")
	if err != nil {
		return err
	}
	env.Setenv("PLUGIN", plugin)
	env.Setenv("TOP", top)
	env.Setenv("GO", goCommand)
	// With the race detector a program sleeps for a second before it ends.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	for _, name := range []string{"HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		env.Setenv(name, os.Getenv(name))
	}
	return nil
}

// zkbench runs the command with sessions from open, and returns its output.
func zkbench(ctx context.Context, open recipes.Opener, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = over(&out, &errs, open).run(ctx, args)
	return code, out.String(), errs.String()
}

// allValid is the check of tests that a busy machine must not fail.
func allValid(record.Record) []string { return nil }

// whole runs the command with its own transports, and returns its output.
func whole(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command{stdout: &out, stderr: &errs, transports: transport.All, terminal: terminalWidth, check: allValid}.run(t.Context(), args)
	return code, out.String(), errs.String()
}

// over returns the command with one transport.
func over(stdout, stderr io.Writer, open recipes.Opener) command {
	return command{stdout: stdout, stderr: stderr, terminal: terminalWidth, transports: map[string]transport.Launcher{
		transport.Direct: func(context.Context, string, recipes.SessionConfig, *exit.Cleanup, transport.Say) (bench.Transport, error) {
			return bench.Transport{Open: open}, nil
		},
	}}
}

// with opens sessions, and returns what wrap makes of them.
func with(wrap func(recipes.Client) recipes.Client, open recipes.Opener) recipes.Opener {
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		s, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	}
}

// apart excludes no other session from its locks.
func apart(s recipes.Client) recipes.Client { return apartSession{s} }

type apartSession struct{ recipes.Client }

func (s apartSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return s.Client.Lock(fmt.Sprint(path, "/", s.ID()), cfg)
}

// stale has the same token for all of its grants.
func stale(s recipes.Client) recipes.Client {
	return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
		h, err := l.Acquire(ctx)
		return staleHold{h}, err
	}}
}

type staleHold struct{ recipes.Hold }

func (staleHold) Token() recipes.Token { return 1 }

// after returns an opener that uses first for that many sessions, and then second. The check of
// the transport uses one more session.
func after(sessions int64, first, second recipes.Opener) recipes.Opener {
	var opened atomic.Int64
	return func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		if opened.Add(1) <= sessions+1 {
			return first(ctx, cfg)
		}
		return second(ctx, cfg)
	}
}

func TestBrokenLockFailsTheRun(t *testing.T) {
	for promise, broken := range map[string]func(recipes.Client) recipes.Client{"mutual exclusion": apart, "growing tokens": stale} {
		t.Run(promise, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "results.txt")
			code, stdout, stderr := zkbench(t.Context(), after(4, zookeeper.Open, with(broken, zookeeper.Open)),
				"run", "-recipe", "lock", "-strategy", "predecessor", "-contenders", "4", "-count", "9", "-out", file)
			if code != exit.Broken {
				t.Errorf("exit code %d; want %d", code, exit.Broken)
			}
			if want := "trial 2 (Lock/workload=drain/strategy=predecessor/contenders=4/via=direct"; !strings.Contains(stderr, want) {
				t.Errorf("stderr does not name the trial:\n%s", stderr)
			}
			if !strings.Contains(stderr, "the lock is broken: "+promise) {
				t.Errorf("stderr does not name the promise:\n%s", stderr)
			}
			if text, err := os.ReadFile(file); strings.Count(string(text), "\nBenchmark") != 1 || stdout != "" {
				t.Errorf("results %q, %v, stdout %q; want the trial before in -out", text, err, stdout)
			}
		})
	}
}

func TestLostServerFailsTheRun(t *testing.T) {
	gone := func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		return nil, recipes.ErrUnavailable
	}
	code, _, stderr := zkbench(t.Context(), after(2, zookeeper.Open, gone),
		"run", "-strategy", "herd", "-contenders", "2", "-count", "2")
	if code != exit.Failed || !strings.Contains(stderr, "trial 2 (") || !strings.Contains(stderr, "open session") || !strings.Contains(stderr, "maxClientCnxns") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
	code, stdout, stderr := zkbench(t.Context(), gone, "run")
	if code != exit.Failed || stdout != "" || !strings.Contains(stderr, "try -via direct: ") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
}

// TestNothingIsPrintedThatATerminalActsUpon: servers, files and arguments contain control
// characters.
func TestNothingIsPrintedThatATerminalActsUpon(t *testing.T) {
	const hostile = "ESCAPED\x1bc\x1bPx\x1b\\\u009b2J\x9b2J\r\x7f\x00\u202e\u2066\u2028\xff"
	gone := func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		return nil, fmt.Errorf("%w: %s", recipes.ErrUnavailable, hostile)
	}
	file := filepath.Join(t.TempDir(), "records")
	must.Do(t, os.WriteFile(file, []byte(`{"zkbench":`+hostile), 0o600))
	for _, args := range [][]string{{"run"}, {hostile}, {"help", hostile}} {
		checkPrinted(t, gone, args...)
	}
	for _, v := range verbs() {
		for _, args := range [][]string{{hostile}, {"-" + hostile}, {file}, {file, file}, {"-record", file + "/" + hostile}, {"-servers", hostile}} {
			if v.name != "serve" || strings.HasPrefix(args[0], "-"+hostile) || args[0] == hostile {
				checkPrinted(t, gone, append([]string{v.name}, args...)...)
			}
		}
	}
}

func checkPrinted(t *testing.T, open recipes.Opener, args ...string) {
	t.Helper()
	_, stdout, stderr := zkbench(t.Context(), open, args...)
	for _, text := range []string{stdout, stderr} {
		if left := strings.NewReplacer("\n", "", "\t", "").Replace(text); !printable.Is(left) {
			t.Errorf("%q prints %q", args, text)
		}
	}
	if stdout+stderr == "" {
		t.Errorf("%q prints nothing", args)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// The record of the trial is kept, because it cannot be measured again.
func TestOutputThatCannotBeWrittenFailsTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.txt")
	var stderr bytes.Buffer
	code := over(full{}, &stderr, zookeeper.Open).run(t.Context(),
		[]string{"run", "-contenders", "2", "-count", "1", "-record", file})
	if code != exit.Failed || !strings.Contains(stderr.String(), "disk full") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr.String())
	}
	if runs, err := readRuns(file); err != nil || len(runs[0].Records) != 1 {
		t.Errorf("-record has %v, %v", runs, err)
	}
}

func TestInterruptBeforeTheFirstResultWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	interrupting := func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		cancel()
		return nil, ctx.Err()
	}
	file := filepath.Join(t.TempDir(), "results.txt")
	code, stdout, stderr := zkbench(ctx, after(0, zookeeper.Open, interrupting), "run", "-out", file)
	if code != exit.Interrupted || stdout != "" || !strings.Contains(stderr, "interrupted after 0 of 90 trials") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
	if files, _ := os.ReadDir(filepath.Dir(file)); len(files) != 0 {
		t.Errorf("-out left %v", files)
	}
}

// Exit code 130 promises that the results are in -out and -record.
func TestInterruptDoesNotHideThatResultsAreLost(t *testing.T) {
	for _, verb := range []string{"run", "slo"} {
		ctx, cancel := context.WithCancel(t.Context())
		file := filepath.Join(t.TempDir(), "records.jsonl")
		interrupting := func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
			_ = os.Mkdir(file, 0o777) // no file can replace a directory
			cancel()
			return nil, ctx.Err()
		}
		args := []string{verb, "-strategy", "herd", "-workload", "drain", "-record", file}
		if verb == "slo" {
			args = append(args, "-under", "1h", "-over", "contenders")
		} else {
			args = append(args, "-contenders", "2")
		}
		code, _, stderr := zkbench(ctx, after(2, zookeeper.Open, interrupting), args...)
		_, partial, _ := strings.Cut(strings.TrimSpace(stderr), "; it is in ")
		runs, err := readRuns(partial)
		if code != exit.Failed || !strings.Contains(stderr, "interrupted after 1") || !strings.Contains(stderr, "write -record") || len(runs) != 1 {
			t.Errorf("%s: exit code %d, %d runs kept, %v, stderr:\n%s", verb, code, len(runs), err, stderr)
		}
	}
}

// interruptAtFirstResult runs a command, interrupts it when it has printed its first
// benchmark line, and returns its exit code.
func interruptAtFirstResult(args []string) int {
	return atFirstResult(args, func(p *os.Process) {
		if err := p.Signal(os.Interrupt); err != nil {
			panic(err)
		}
	})
}

// hangupAtFirstResult is interruptAtFirstResult with SIGHUP, repeated until the command has
// ended, because two signals at once can become one.
func hangupAtFirstResult(args []string) int {
	return atFirstResult(args, func(p *os.Process) {
		go func() {
			for p.Signal(syscall.SIGHUP) == nil {
				time.Sleep(time.Millisecond)
			}
		}()
	})
}

// atFirstResult runs a command, calls do when it has printed its first benchmark
// line, and returns its exit code.
func atFirstResult(args []string, do func(*os.Process)) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		fmt.Print(line)
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "Benchmark") {
			do(cmd.Process)
			break
		}
	}
	if _, err := io.Copy(os.Stdout, lines); err != nil {
		panic(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
