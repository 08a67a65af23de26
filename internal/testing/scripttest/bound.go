package scripttest

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Limit is how long a script may take. It needs seconds, on a busy machine perhaps
// a minute.
const Limit = 5 * time.Minute

// Bound ends all processes of a script that has taken limit: the script could wait
// for them for ever, and fails instead. Go programs print their goroutines first. When a script has ended, in whatever way, it
// kills what the script has left: testscript only interrupts that, and waits for it.
//
// A process is the script's if its $WORK is the script's directory. Only
// Linux shows that; on other systems nothing is killed.
func Bound(env *testscript.Env, limit time.Duration) {
	dir := env.WorkDir
	timer := time.AfterFunc(limit, func() { quitAll(dir); killAll(dir) })
	env.Defer(func() { // after a failure, before testscript waits for the background
		late := !timer.Stop()
		killAll(dir)
		if late {
			env.T().Fatal("the script has taken ", limit, "; its processes were ended")
		}
	})
}
