package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// helperDirEnv makes the test binary the parent of an ensemble, which a test then kills.
const helperDirEnv = "ENSEMBLE_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDirEnv); dir != "" {
		startAndHang(dir)
	}
	leaktest.Main(ensembletest.Owner{Tests: m})
}

// startAndHang starts a server, prints its process id, and never returns.
func startAndHang(dir string) {
	cfg := ensembletest.Quick(1)
	cfg.Dir = dir
	e, err := ensemble.Start(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(e.Server(0).Pid())
	watchdog.Hang()
}

func TestOneServerServesAndReportsItsFigures(t *testing.T) {
	began := time.Now()
	e := ensembletest.Start(t, ensembletest.Quick(1))
	t.Logf("%s started in %v", e.Installation(), time.Since(began))
	s := e.Server(0)

	if mode, err := s.Mode(t.Context()); err != nil || mode != ensemble.Standalone {
		t.Errorf("Mode = %q, %v; want %q", mode, err, ensemble.Standalone)
	}
	figures, err := s.Mntr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := figures["zk_server_state"]; got != "standalone" {
		t.Errorf("zk_server_state = %q of %d figures, want standalone", got, len(figures))
	}
	if version, want := figures["zk_version"], e.Installation().Version; !strings.HasPrefix(version, want) {
		t.Errorf("the server reports version %q; its jar is of %q", version, want)
	}
	if leader, err := e.Leader(t.Context()); err != nil || leader != s {
		t.Errorf("Leader = %v, %v; want the only server", leader, err)
	}
	if got := e.Connect(); got != s.Addr() {
		t.Errorf("Connect = %q, want %q", got, s.Addr())
	}
}

func TestStopLeavesNothing(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.Dir = t.TempDir()
	e := ensembletest.Start(t, cfg)
	s := e.Server(0)
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if pid := s.Pid(); pid != 0 {
		t.Errorf("Pid = %d after Stop, want 0", pid)
	}
	if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) != 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if s.Log() == "" {
		t.Error("the log is empty after Stop")
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a server of a stopped ensemble was restarted")
	}
}

func TestAnotherServerLeadsWhenTheLeaderIsKilled(t *testing.T) {
	began := time.Now()
	e := ensembletest.Start(t, ensembletest.Quick(3))
	t.Logf("three servers started in %v", time.Since(began))
	first := leader(t, e)

	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if pid := first.Pid(); pid != 0 {
		t.Errorf("Pid = %d after Kill, want 0", pid)
	}
	if second := leader(t, e); second == first {
		t.Error("the dead server leads")
	}
	if err := e.WaitServing(t.Context()); err != nil {
		t.Errorf("the survivors do not serve: %v", err)
	}

	began = time.Now()
	if err := first.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("restarted in %v", time.Since(began))
	if mode, err := first.Mode(t.Context()); err != nil || mode != ensemble.Follower {
		t.Errorf("the former leader is %q, %v; want a follower", mode, err)
	}

	if err := first.Forget(); err == nil {
		t.Error("Forget of a running server succeeded")
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Forget(); err != nil {
		t.Fatal(err)
	}
	const transfer = "Getting a " // snapshot, or diff, from the leader
	transfers := strings.Count(first.Log(), transfer)
	if err := first.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mode, err := first.Mode(t.Context()); err != nil || mode != ensemble.Follower {
		t.Errorf("after Forget the server is %q, %v; want a follower", mode, err)
	}
	if log := first.Log(); strings.Count(log, transfer) <= transfers {
		t.Errorf("it got no data from the leader:\n%s", log)
	}
}

func TestAFrozenServerIsSilentUntilThawed(t *testing.T) {
	s := ensembletest.Start(t, ensembletest.Quick(1)).Server(0)
	freeze(t, s)
	freeze(t, s) // a second Freeze neither fails nor hangs

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if mode, err := s.Mode(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen: Mode = %q, %v; want no answer", mode, err)
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if mode, err := s.Mode(t.Context()); err != nil || mode != ensemble.Standalone {
		t.Errorf("thawed: Mode = %q, %v; want %q", mode, err, ensemble.Standalone)
	}
}

func TestAnotherServerLeadsWhileTheLeaderIsFrozen(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(3))
	first := leader(t, e)
	freeze(t, first)
	if second := leader(t, e); second == first {
		t.Error("the frozen server leads")
	}
	if err := first.Thaw(); err != nil {
		t.Fatal(err)
	}
	leader(t, e)
}

func TestAFrozenServerCanBeRestartedAndStopped(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	s := e.Server(0)
	freeze(t, s)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	freeze(t, s)
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}

func TestADeadServerCannotBeFrozen(t *testing.T) {
	s := ensembletest.Start(t, ensembletest.Quick(1)).Server(0)
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Freeze(); err == nil {
		t.Error("a dead server was frozen")
	}
}

func TestSharedServerIsOne(t *testing.T) {
	if a, b := ensembletest.Shared(t), ensembletest.Shared(t); a != b {
		t.Error("two shared servers")
	}
}

func leader(t *testing.T, e *ensemble.Ensemble) *ensemble.Server {
	t.Helper()
	s, err := e.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func freeze(t *testing.T, s *ensemble.Server) {
	t.Helper()
	err := s.Freeze()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
