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
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
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
	e := ensembletest.Start(t, ensembletest.Quick(1))
	s := e.Server(0)
	plays(t, s, ensemble.Standalone)
	figures := fourletter.Pairs(must.Get(s.Word(t.Context(), "mntr"))(t), "\t")
	if got := figures["zk_server_state"]; got != "standalone" {
		t.Errorf("zk_server_state = %q of %d figures, want standalone", got, len(figures))
	}
	if version, want := figures["zk_version"], e.Installation().Version; !strings.HasPrefix(version, want) {
		t.Errorf("the server reports version %q; its jar is of %q", version, want)
	}
	if leader(t, e) != s || e.Connect() != s.Addr() {
		t.Errorf("another server leads, or %q does not connect to %q", e.Connect(), s.Addr())
	}
}

func TestStopLeavesNothing(t *testing.T) {
	cfg := ensembletest.Quick(1)
	cfg.Dir = t.TempDir()
	e := ensembletest.Start(t, cfg)
	s := e.Server(0)
	for range 2 {
		must.Do(t, e.Stop())
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
	if s.Restart(t.Context()) == nil || s.Freeze() == nil {
		t.Error("a server of a stopped ensemble was restarted or frozen")
	}
}

func TestAnotherServerLeadsWhenTheLeaderFails(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(3))
	first := leader(t, e)
	for range 2 {
		must.Do(t, first.Kill())
	}
	if pid := first.Pid(); pid != 0 {
		t.Errorf("Pid = %d after Kill, want 0", pid)
	}
	second := leader(t, e)
	if second == first {
		t.Error("the dead server leads")
	}
	must.Report(t, e.WaitServing(t.Context())) // the survivors
	must.Do(t, first.Restart(t.Context()))
	plays(t, first, ensemble.Follower)

	if err := first.Forget(); err == nil {
		t.Error("Forget of a running server succeeded")
	}
	must.Do(t, first.Kill())
	must.Do(t, first.Forget())
	const transfer = "Getting a " // snapshot, or diff, from the leader
	transfers := strings.Count(first.Log(), transfer)
	must.Do(t, first.Restart(t.Context()))
	plays(t, first, ensemble.Follower)
	if log := first.Log(); strings.Count(log, transfer) <= transfers {
		t.Errorf("it got no data from the leader:\n%s", log)
	}

	freeze(t, second)
	if leader(t, e) == second {
		t.Error("the frozen server leads")
	}
	must.Do(t, second.Thaw())
	leader(t, e)
}

func TestAFrozenServerIsSilentUntilThawedOrRestarted(t *testing.T) {
	e := ensembletest.Start(t, ensembletest.Quick(1))
	s := e.Server(0)
	freeze(t, s)
	freeze(t, s) // a second Freeze neither fails nor hangs
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if mode, err := s.Mode(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen: Mode = %q, %v; want no answer", mode, err)
	}
	must.Do(t, s.Thaw())
	plays(t, s, ensemble.Standalone)

	freeze(t, s)
	must.Do(t, s.Restart(t.Context()))
	freeze(t, s)
	must.Report(t, e.Stop())
}

func leader(t *testing.T, e *ensemble.Ensemble) *ensemble.Server {
	t.Helper()
	return must.Get(e.Leader(t.Context()))(t)
}

// plays checks the role of a server.
func plays(t *testing.T, s *ensemble.Server, want ensemble.Mode) {
	t.Helper()
	if mode, err := s.Mode(t.Context()); err != nil || mode != want {
		t.Errorf("Mode = %q, %v; want %q", mode, err, want)
	}
}

func freeze(t *testing.T, s *ensemble.Server) {
	t.Helper()
	err := s.Freeze()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	must.Do(t, err)
}
