package helptext_test

import (
	"flag"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const text = `Usage: tool fetch [flags] NAME

Fetches NAME from the server, which has to run, and writes it to stdout so that it can be
piped. It retries once.

Examples:

	# A comment.
	tool fetch a
	other fetch a

	tool fetch -try b | sort
	tool fetch c

Rules:

	4    is not an exit code.

Exit codes:

	0    it was written
	1    no server answers, or it is
	     too slow
	128+n  interrupted (by signal n)

A last paragraph.`

func flags() *flag.FlagSet {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.Bool("try", false, helptext.Common("do not wait: exit\nwith 1"))
	f.String("servers", "", helptext.Common("`addresses` as host:port of some\nservers (all are tried)"))
	f.Int("rare", 7, "few people need this `number`")
	return f
}

func TestShort(t *testing.T) {
	const want = `Usage: tool fetch [flags] NAME

Fetches NAME from the server, which has to run, and writes it to stdout so that
it can be piped. It retries once.

Examples:
    tool fetch a
    tool fetch -try b | sort

Common flags:
  -servers addresses  addresses as host:port of some servers
  -try                do not wait

Exit codes: 0 it was written, 1 no server answers, 128+n interrupted.

More: tool help fetch, man tool-fetch`
	if got := helptext.Short("tool", "fetch", text, flags()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLong(t *testing.T) {
	const want = text + `

Flags:

  -rare number
    	few people need this number (default 7)
  -servers addresses
    	addresses as host:port of some
    	servers (all are tried)
  -try
    	do not wait: exit
    	with 1`
	if got := helptext.Long(text, flags()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
