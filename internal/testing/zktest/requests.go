package zktest

import (
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Between calls do, once, when the server is about to execute the first request of the
// session that matches. Other sessions are served while do runs. The function that it returns
// reports whether do was called.
func Between(srv *zkserver.Server, s recipes.Session, matches func(zkserver.Request) bool, do func()) (met func() bool) {
	done := make(chan struct{})
	met = func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID == s.ID() && matches(r) && !met() {
			close(done) // requests that do sends through s are served after this one
			do()
		}
		return zkserver.Fault{}
	})
	return met
}

// Op matches the requests of an operation whose path contains the parts.
func Op(op zkserver.Op, parts ...string) func(zkserver.Request) bool {
	return func(r zkserver.Request) bool {
		for _, part := range parts {
			if !strings.Contains(r.Path, part) {
				return false
			}
		}
		return r.Op == op
	}
}

// Nth matches the n-th request that another function matches.
func Nth(n int, matches func(zkserver.Request) bool) func(zkserver.Request) bool {
	seen := 0
	return func(r zkserver.Request) bool {
		if !matches(r) {
			return false
		}
		seen++
		return seen == n
	}
}

// Creates reports whether contenders create their znodes by this operation.
func Creates(op zkserver.Op) bool { return op == zkserver.OpCreate || op == zkserver.OpCreate2 }
