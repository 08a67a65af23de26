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

func TestTheCommandRunsOncePerPeriod(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("runs a shell")
	}
	world := hosttest.New(t)
	output := filepath.Join(t.TempDir(), "output")
	j := &job{
		open: world.Plugin.Open, zookeeper: world.Config(), period: time.Hour,
		path: "/cron", command: []string{"sh", "-c", "echo runs >>" + output},
	}
	for _, j.period = range []time.Duration{time.Hour, time.Hour, time.Nanosecond, time.Hour} {
		if err := j.once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(output)
	if want := "runs\nruns\n"; err != nil || string(got) != want {
		t.Errorf("%v: it printed\n%s", err, got)
	}
}
