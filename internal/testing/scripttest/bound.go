// Package scripttest prevents tests of testscript files from hanging, and from depending
// on the signals that their parent process ignores.
//
//  1. [ResetSignals], in TestMain, before the tests run.
//  2. [Bound], in testscript.Params.Setup, for each script.
package scripttest

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Limit is how long a script may take. A script needs seconds, or perhaps a minute on a
// busy machine.
const Limit = 5 * time.Minute

// Bound ends all processes of a script that takes longer than limit. Otherwise the script
// could wait for them forever. Go programs print their goroutines first. The script fails.
// When a script has ended in any way, Bound kills the processes that it has left behind:
// testscript only interrupts them, and waits.
//
// A process belongs to the script if its environment names the script's directory, as
// $WORK does. Only Linux shows the environment of other
// processes. On other systems Bound kills nothing.
func Bound(env *testscript.Env, limit time.Duration) {
	dir := env.WorkDir
	timer := time.AfterFunc(limit, func() { quitAll(dir); killAll(dir) })
	env.Defer(func() { // even after a failure; testscript waits for background processes later
		late := !timer.Stop()
		killAll(dir)
		if late {
			env.T().Fatal("the script took longer than ", limit, "; its processes were ended")
		}
	})
}
