package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// askedLeast is the session timeout that is asked for to learn the smallest that a server
// grants. What is below is not seen.
const askedLeast = time.Second

// least is the smallest session timeout that a server grants.
type least struct {
	server  string
	timeout time.Duration
}

// leastTimeouts opens a session on each server and closes it. A server that does not
// answer is left out, for the other checks say so.
func leastTimeouts(ctx context.Context, open recipes.Opener, cfg recipes.SessionConfig) (all []least) {
	servers := cfg.Servers
	for _, server := range servers {
		cfg.Servers, cfg.SessionTimeout = []string{server}, askedLeast
		ctx, cancel := context.WithTimeout(ctx, serverTimeout)
		if s, err := open(ctx, cfg); err == nil {
			all = append(all, least{server, s.Timeout()})
			_ = s.Close(ctx)
		}
		cancel()
	}
	return all
}

// timeouts compares the smallest session timeouts of the servers. A server raises what is
// asked for, and the ensemble stores what was asked for. So after an election a leader
// whose own bound is smaller expires the session earlier than its client was granted.
func (v *doctorVerb) timeouts(all []least, asked time.Duration) {
	if len(all) < 2 {
		return
	}
	asked = cmp.Or(asked, recipes.DefaultSessionTimeout)
	differ, largest := false, all[0].timeout
	var list strings.Builder
	for _, l := range all {
		differ = differ || l.timeout != all[0].timeout
		largest = max(largest, l.timeout)
		fmt.Fprintf(&list, " %s %v;", l.server, l.timeout)
	}
	text := strings.TrimSuffix(list.String(), ";")
	switch {
	case !differ:
		v.found("timeouts", fine, "", "each server grants a session timeout of %v, and none below (below %v was not tried)", largest, askedLeast)
	case asked >= largest:
		v.found("timeouts", fine, "", "the servers' smallest session timeouts differ, and %v is asked for, which is not below:%s", asked, text)
	default:
		v.found("timeouts", warn, fmt.Sprintf("set the same minSessionTimeout in zoo.cfg of all servers, or ask for a session timeout of %v", largest),
			"the servers' smallest session timeouts differ. After an election two clients can hold one lock for a moment:%s", text)
	}
}
