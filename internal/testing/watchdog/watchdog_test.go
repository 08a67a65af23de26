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
	case "hangs with a child":
		hangInAChild()
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

func hangHere() { Hang() }

// hangInAChild waits for the end of its input, which never comes.
func hangInAChild() { _, _ = os.Stdin.Read(make([]byte, 1)) }

// work uses a processor for d.
func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// TestSubject is run by the tests below in a process of its own.
func TestSubject(t *testing.T) {
	switch os.Getenv("WATCHDOG_SUBJECT") {
	case "hangs":
		t.Parallel()
		t.Run("below", func(t *testing.T) {
			t.Run("of all", func(t *testing.T) { hangHere() })
		})
	case "hangs with a child", "works", "works on", "ignores the end of a child":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "WATCHDOG_CHILD="+strings.Replace(os.Getenv("WATCHDOG_SUBJECT"), "ignores the end of a child", "hangs with a child", 1))
		if _, err := child.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if said, err := child.CombinedOutput(); err != nil && os.Getenv("WATCHDOG_SUBJECT") != "ignores the end of a child" {
			t.Fatalf("%v:\n%s", err, said)
		}
	}
}

// patience is the patience of the watchdog in these tests.
const patience = 4 * time.Second

// watched runs a subject under a watchdog with a short patience, and returns its output.
// Only the watchdog ends it.
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

func TestHangs(t *testing.T) {
	const failed = "--- FAIL: TestSubject"
	for name, tt := range map[string]struct {
		subject string
		code    int
		want    []string
		without string
	}{
		"of a goroutine, prints all stacks": {"hangs", 2, []string{"watchdog.TestSubject.func1.1 has made no progress for 4s", "watchdog.hangHere(", "watchdog.watch("}, ""},
		// The test continues, and fails with the output of its child.
		"of a child, prints its stacks": {"hangs with a child", 1, []string{"watchdog.TestSubject has made no progress", "watchdog.hangInAChild(", failed}, ""},
		// A test that passes only because the watchdog ended its child does not pass.
		"of a child, fails a test that ignores it": {"ignores the end of a child", 1, nil, failed},
		// A build on a slow machine takes longer than the patience.
		"not while a child works": {"works", 0, nil, ""},
		// A test that polls forever, beside a child that works, hangs too.
		"with a child that works forever": {"works on", 1, []string{"watchdog.TestSubject has run for 12s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.subject != "hangs" && runtime.GOOS != "linux" {
				t.Skip("the watchdog finds children on Linux only")
			}
			code, output := watched(t, tt.subject)
			if code != tt.code || tt.without != "" && strings.Contains(output, tt.without) {
				t.Errorf("exit code %d; want %d, without %q:\n%s", code, tt.code, tt.without, output)
			}
			for _, want := range tt.want {
				if !strings.Contains(output, want) {
					t.Errorf("no %q in\n%s", want, output)
				}
			}
		})
	}
}

func TestARunningTestDoesNotHang(t *testing.T) {
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
		got := seen.update("goroutine 1 [running]:\nmain.main()\n\n"+at(tt.where, string(rune('1'+i))), tt.busy)
		if len(got) != 1 || got[0].still != tt.still || got[0].times != i+1 || got[0].test != "x.TestY.func1" {
			t.Fatalf("check %d: %+v; want it still %d times", i, got, tt.still)
		}
	}
	for _, waits := range []string{"testing.(*T).Run(0x1)", "testing.(*T).Parallel(0x1)", "testing/synctest.Test(0x1)", "testing.tRunner.func1()"} {
		if got := seen.update(strings.Replace(at("0x1", "1"), "x.wait(0x1)", waits, 1), false); len(got) != 0 {
			t.Errorf("in %s: %+v; want nothing: it waits for other tests", waits, got)
		}
	}
}
