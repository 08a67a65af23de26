package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host/hosttest"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestTheCommandRunsOncePerTimeAndNotForEarlierTimes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("runs a shell")
	}
	world := hosttest.New(t)
	output := filepath.Join(t.TempDir(), "output")
	j := &job{
		open: world.Plugin.Open, zookeeper: world.Config(),
		path: "/cron", command: []string{"sh", "-c", `echo "$CRON_TIME" >>` + output},
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, when := range []time.Time{noon, noon, noon.Add(-time.Minute), noon.Add(time.Minute)} {
		if err := j.once(t.Context(), when); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(output)
	if want := "2026-11-22T12:00:00Z\n2026-11-22T12:01:00Z\n"; err != nil || string(got) != want {
		t.Errorf("%v: it ran at\n%s", err, got)
	}
}
