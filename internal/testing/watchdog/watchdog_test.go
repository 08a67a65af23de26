package watchdog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestMain(m *testing.M) {
	switch os.Getenv("WATCHDOG_CHILD") {
	case "hangs":
		hangInAChild()
	case "works":
		work()
	}
	var stop func() error
	if n := checksOf[os.Getenv("WATCHDOG_SUBJECT")]; n > 0 {
		stop = start(interval, scripted(n))
	} else {
		stop = Start()
	}
	code := m.Run()
	if hung := stop(); hung != nil && code == 0 {
		code = 1
	}
	os.Exit(code)
}

// The patience of the watchdog in these tests, and the time between two checks. Only a subject
// without a child waits for it: it hangs forever.
const (
	patience = 4 * time.Second
	interval = patience / checks
)

func hangHere() { Hang() }

// hangInAChild waits for the end of its input, which never comes.
func hangInAChild() {
	fmt.Println("begins")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// work uses a processor until its input ends.
func work() {
	fmt.Println("begins")
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for i := 0; ; i++ {
	}
}

// checksOf is the number of checks while a subject waits for its child.
var checksOf = map[string]int{
	"hangs with a child": checks, "ignores the end of a child": checks, "works": checks + 1, "works on": longest,
}

// enough is closed after these checks.
var enough = make(chan struct{})

// scripted makes n checks. Their times do not depend on how busy the machine is: the first comes
// when the test waits for its child, and each other when a working child has used the processor.
func scripted(n int) func(end <-chan struct{}) bool {
	until := func(end <-chan struct{}, condition func() bool) bool {
		for !condition() {
			select {
			case <-end:
				return false
			case <-time.After(10 * time.Millisecond):
			}
		}
		return true
	}
	return func(end <-chan struct{}) bool {
		if n--; n < 0 {
			close(enough)
			<-end
			return false
		}
		_, before := descendants()
		return until(end, waitsForAChild) && until(end, func() bool {
			_, used := descendants()
			return !strings.HasPrefix(os.Getenv("WATCHDOG_SUBJECT"), "works") || used-before > interval/busyShare
		})
	}
}

func waitsForAChild() bool {
	for block := range strings.SplitSeq(allStacks(), "\n\n") {
		if strings.Contains(block, "[IO wait") && strings.Contains(block, "\nio.ReadAll(") {
			return true
		}
	}
	return false
}

// TestSubject is run by the tests below in a process of its own.
func TestSubject(t *testing.T) {
	switch subject := os.Getenv("WATCHDOG_SUBJECT"); subject {
	case "hangs":
		t.Parallel()
		t.Run("below", func(t *testing.T) {
			t.Run("of all", func(t *testing.T) { hangHere() })
		})
	case "hangs with a child", "works", "works on", "ignores the end of a child":
		role := "hangs"
		if strings.HasPrefix(subject, "works") {
			role = "works"
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "WATCHDOG_CHILD="+role)
		stdin := must.Get(child.StdinPipe())(t)
		stdout := must.Get(child.StdoutPipe())(t)
		child.Stderr = child.Stdout
		must.Do(t, child.Start())
		output := bufio.NewReader(stdout)
		must.Get(output.ReadString('\n'))(t)
		go func() {
			<-enough
			if subject == "works" {
				_ = stdin.Close()
			}
		}()
		said := must.Get(io.ReadAll(output))(t)
		if err := child.Wait(); err != nil && subject != "ignores the end of a child" {
			t.Fatalf("%v:\n%s", err, said)
		}
	}
}

// watched runs a subject under a watchdog, and returns its output. Only the watchdog ends it.
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
