package watchdog

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	switch os.Getenv("WATCHDOG_CHILD") {
	case "stands":
		standInAChild()
	case "works":
		work(patience + patience/4)
		os.Exit(0)
	case "works on":
		work(time.Minute)
		os.Exit(0)
	}
	stop := Start()
	code := m.Run()
	if hung := stop(); hung != nil && code == 0 {
		code = 1
	}
	os.Exit(code)
}

func standStill() { Hang() }

// standInAChild waits for an end of its input that never comes.
func standInAChild() { _, _ = os.Stdin.Read(make([]byte, 1)) }

// work takes a processor for that long.
func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// TestSubject is what the tests below run in a process of its own.
func TestSubject(t *testing.T) {
	switch os.Getenv("WATCHDOG_SUBJECT") {
	case "hangs":
		t.Parallel()
		t.Run("below", func(t *testing.T) {
			t.Run("of all", func(t *testing.T) { standStill() })
		})
	case "stands", "works", "works on", "goes on":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "WATCHDOG_CHILD="+strings.Replace(os.Getenv("WATCHDOG_SUBJECT"), "goes on", "stands", 1))
		if _, err := child.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if said, err := child.CombinedOutput(); err != nil && os.Getenv("WATCHDOG_SUBJECT") != "goes on" {
			t.Fatalf("%v:\n%s", err, said)
		}
	}
}

// patience is that of the watchdog in these tests.
const patience = 4 * time.Second

// watched runs a subject under a watchdog with little patience, and returns what it
// wrote. It ends because of the watchdog, or not at all.
func watched(t *testing.T, subject string) (code int, output string) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestSubject$")
	command.Env = append(os.Environ(), patienceEnv+"="+patience.String(), "WATCHDOG_SUBJECT="+subject)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	exit := &exec.ExitError{}
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String()
}

func TestHangEndsWithAllStacks(t *testing.T) {
	t.Parallel()
	code, output := watched(t, "hangs")
	if code != 2 {
		t.Errorf("exit code %d; want the watchdog's", code)
	}
	for _, want := range []string{"watchdog.TestSubject.func1.1 has stood still for 4s", "watchdog.standStill(", "watchdog.watch("} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}

// The test that waited goes on, and fails with what its child has printed.
func TestHangOfAChildEndsWithItsStacks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children are found on Linux only")
	}
	code, output := watched(t, "stands")
	said := strings.Contains(output, "watchdog.TestSubject has stood still") && strings.Contains(output, "watchdog.standInAChild(")
	if code != 1 || !said || !strings.Contains(output, "--- FAIL: TestSubject") {
		t.Errorf("exit code %d; want that of a test that failed, and the child's stacks:\n%s", code, output)
	}
}

// A test that passes only because the watchdog ended its child does not pass.
func TestATestThatIsRescuedFails(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children are found on Linux only")
	}
	code, output := watched(t, "goes on")
	if code != 1 || strings.Contains(output, "--- FAIL: TestSubject") {
		t.Errorf("exit code %d; want 1, of a test that passed:\n%s", code, output)
	}
}

// A build takes longer than the patience on a machine that is slow enough.
func TestTestWhoseChildWorksDoesNotHang(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children are found on Linux only")
	}
	if code, output := watched(t, "works"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// A test that waits for what never comes, beside a child that works, hangs too.
func TestTestWhoseChildWorksOnHangs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("children are found on Linux only")
	}
	code, output := watched(t, "works on")
	if code != 1 || !strings.Contains(output, "watchdog.TestSubject has run for 12s") {
		t.Errorf("exit code %d; want that of a test that failed:\n%s", code, output)
	}
}

func TestTestThatGoesOnDoesNotHang(t *testing.T) {
	const format = "goroutine 7 [select, N minutes]:\nx.wait(AT)\n\t/x.go:1 +0x1\nx.TestY.func1(0x2)\n\t/y.go:2 +0x1\ntesting.tRunner(0x1, 0x2)\n\t/t.go:3\ncreated by testing.(*T).Run in goroutine 1\n\t/t.go:4\n"
	at := func(where, minutes string) string {
		return strings.NewReplacer("AT", where, "N", minutes).Replace(format)
	}
	seen := sightings{}
	for i, tt := range []struct {
		where string
		busy  bool
		still int
	}{{"0x1", false, 1}, {"0x1", false, 2}, {"0x1", false, 3}, {"0x1", true, 1}, {"0x1", false, 2}, {"0x2", false, 1}, {"0x2", false, 2}} {
		got := seen.look("goroutine 1 [running]:\nmain.main()\n\n"+at(tt.where, string(rune('1'+i))), tt.busy)
		if len(got) != 1 || got[0].still != tt.still || got[0].times != i+1 || got[0].test != "x.TestY.func1" {
			t.Fatalf("look %d: %+v; want it seen still %d times", i, got, tt.still)
		}
	}
	for _, waits := range []string{"testing.(*T).Run(0x1)", "testing.(*T).Parallel(0x1)", "testing/synctest.Test(0x1)", "testing.tRunner.func1()"} {
		if got := seen.look(strings.Replace(at("0x1", "1"), "x.wait(0x1)", waits, 1), false); len(got) != 0 {
			t.Errorf("in %s: %+v; want nothing: it waits for others", waits, got)
		}
	}
}
