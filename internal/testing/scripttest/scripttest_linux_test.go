package scripttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/scripttest"
)

// With hangEnv set, this program is a child process of a test and hangs.
func TestMain(m *testing.M) {
	if os.Getenv(hangEnv) != "" {
		hangHere()
	}
	scripttest.ResetSignals()
	leaktest.Main(m)
}

const hangEnv = "SCRIPTTEST_HANG"

// hangHere hangs. It sleeps, because the runtime ends a program whose goroutines are all
// blocked.
func hangHere() { time.Sleep(time.Hour) }

const (
	insideEnv = "SCRIPTTEST_INSIDE"
	limitEnv  = "SCRIPTTEST_LIMIT"
)

// A background shell that ignores INT, with a child that keeps its output open, does not
// keep the test from ending.
func TestHungScriptFails(t *testing.T) {
	for _, kind := range []string{"waits", "fails", "ends", "program"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for limit := 2 * time.Second; ; limit *= 2 {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInside$/^"+kind, "-test.v")
				cmd.Env = append(os.Environ(), insideEnv+"="+t.TempDir(), limitEnv+"="+limit.String())
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), "FAIL: TestInside/"+kind) {
					t.Errorf("%v\n%s", err, out)
				}
				stacks := strings.Contains(string(out), "hangHere")
				if stacks == (kind == "program") {
					return
				}
				if stacks || limit > time.Minute { // on a busy machine the program may hang only after the limit
					t.Fatalf("shows where a program hangs: %v\n%s", stacks, out)
				}
			}
		})
	}
}

// TestInside runs the scripts of TestHungScriptFails.
func TestInside(t *testing.T) {
	dir := os.Getenv(insideEnv)
	if dir == "" {
		t.Skip("TestHungScriptFails runs this test")
	}
	program := "env " + hangEnv + "=1\nexec " + os.Args[0] + " &program&\nwait program\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "program.txtar"), []byte(program), 0o600))
	for name, last := range map[string]string{"waits": "wait shell\n", "fails": "exists nothing\n", "ends": ""} {
		script := "exec sh hang.sh &shell&\nexec sh ready.sh\n" + last + "-- ready.sh --\nuntil test -e ready; do sleep 0.01; done\n-- hang.sh --\ntrap '' INT\n: >ready\nsh -c 'trap \"\" INT; sleep 3600' &\nsleep 3600\n"
		must.Do(t, os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(script), 0o600))
	}
	short := must.Get(time.ParseDuration(os.Getenv(limitEnv)))(t)
	limit := map[bool]time.Duration{true: short, false: scripttest.Limit}
	testscript.Run(t, testscript.Params{Dir: dir, Setup: func(env *testscript.Env) error {
		scripttest.Bound(env, limit[!strings.Contains(env.WorkDir, "fails")])
		return nil
	}})
}

// A child of the tests receives HUP even if the tests run under nohup.
func TestSignalsAreNotInherited(t *testing.T) {
	if os.Getenv(insideEnv) != "" {
		if err := exec.Command("sh", "-c", "kill -HUP $$; sleep 0; exit 0").Run(); err == nil {
			t.Error("the child ignored HUP")
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP INT; exec "$0" -test.run='^TestSignalsAreNotInherited$'`, os.Args[0])
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
