package main

import (
	"context"
	"os"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
)

// hostileNames are names of znodes that would run "touch ran", or become several words, if a
// shell read them unquoted. Their first letters differ.
var hostileNames = []string{
	"a;touch ran", "b$(touch ran)", "c`touch ran`", "d'e; touch ran", `f"g; touch ran`, "h i", `j\k`, "l!!m",
	"n*?[x]", "o{1,2}", "p~#q", "r&touch ran", "s|touch ran", "t>ran", "u:v=w@x", "é;touch ran", "z -servers y",
}

// unprintableNames are not completed.
var unprintableNames = []string{"A\ntouch ran", "B\x1b[2J", "C\u202ea", "D\u009bm", "E\xff", "F\ta", "G\r"}

// hostile is zkrecipes with servers that have these names. It writes its arguments to the
// file that $ARGUMENTS names.
func hostile(args []string) int {
	if args[0] == "-complete" {
		t := verb.NewTool(os.Stdout, os.Stderr)
		t.Launch = func(context.Context, host.Config) (verb.Plugin, error) {
			return &listed{names: append(unprintableNames[:len(unprintableNames):len(unprintableNames)], hostileNames...)}, nil
		}
		return answer(t, args[1:])
	}
	file := os.Getenv("ARGUMENTS")
	if os.WriteFile(file+".new", []byte(strings.Join(args, "\x00")), 0o600) != nil || os.Rename(file+".new", file) != nil {
		return 1
	}
	return 0
}
