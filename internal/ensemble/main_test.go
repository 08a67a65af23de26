package ensemble_test

import (
	"context"
	"fmt"
	"os"
	"testing"

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
