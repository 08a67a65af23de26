package scripttest

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Limit is how long a script may take. It needs seconds, on a busy machine perhaps
// a minute.
const Limit = 5 * time.Minute

// Bound kills all processes of a script that has taken limit: the script could wait
// for them for ever, and fails instead. When a script has ended, in whatever way, it
// kills what the script has left: testscript only interrupts that, and waits for it.
//
// A process is the script's if its environment names the script's directory. Only
// Linux shows that; on other systems nothing is killed.
func Bound(env *testscript.Env, limit time.Duration) {
	dir := env.WorkDir
	timer := time.AfterFunc(limit, func() {
		env.T().Log("the script has taken", limit, "and its processes are killed")
		killAll(dir)
	})
	env.Defer(func() { // before testscript waits for commands in the background
		timer.Stop()
		killAll(dir)
	})
}
