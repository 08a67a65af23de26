// Package planted switches on the mistakes that command mutants plants in a copy of the
// source. Only the command and those copies import it.
package planted

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

// Environment variables of a test binary with planted mistakes.
const (
	ActiveEnv  = "ZKRECIPES_MUTANT"         // the number of the active mistake; none if unset
	ReachedEnv = "ZKRECIPES_MUTANT_REACHED" // a file to which the numbers of the reached mistakes are appended
)

var (
	active  = number()
	reached = os.Getenv(ReachedEnv)
	seen    sync.Map // int -> struct{}
)

func number() int {
	n, err := strconv.Atoi(os.Getenv(ActiveEnv))
	if err != nil {
		return -1
	}
	return n
}

// On reports whether mistake n is active, and records that it was reached.
func On(n int) bool {
	if reached != "" {
		note(n)
	}
	return n == active
}

func note(n int) {
	if _, again := seen.LoadOrStore(n, struct{}{}); again {
		return
	}
	f, err := os.OpenFile(reached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, n); err != nil {
		panic(err)
	}
}

// Or returns f, or other if mistake n is active.
func Or[F any](n int, f, other F) F {
	if On(n) {
		return other
	}
	return f
}

// Without returns s, without its i-th element if mistake n is active.
func Without[S ~[]E, E any](n, i int, s S) S {
	if !On(n) {
		return s
	}
	return append(append(S{}, s[:i]...), s[i+1:]...)
}
