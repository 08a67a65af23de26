package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// neverOne are the texts in which the number before the noun is never 1, each with the reason.
var neverOne = map[string]string{
	"%s\n  fitted to %s at %s, %d to %d contenders\n":                                          "a fit needs several levels, from 2 contenders up",
	"  %d contenders make %s handoffs/s (95%%: %s to %s)":                                      "an estimate needs 2 contenders or more",
	"%d contenders hold a %s: %s":                                                              "one holder is no violation",
	"%d sessions from one address are more than maxClientCnxns (%d); raise it, or spread them": "more than a limit of 1 or more",
	"%d sessions are needed at once, and the servers allow %s from one address (maxClientCnxns); raise it, use fewer -contenders, or spread them over machines with -join": "more than a limit of 1 or more",
	"%d sessions need %d open files, and this process may have %d; raise the limit (ulimit -n, LimitNOFILE= of systemd) by %d":                                             "one session fits into every machine",
	"%d sessions need as many ports, and this machine has %d for each of %d addresses of servers; widen net.ipv4.ip_local_port_range by %d":                                "one session fits into every machine",
	"%d sessions need about %d MiB of memory, and %d MiB are available%s: %d MiB are missing":                                                                              "one session fits into every machine",
}

// notNouns are words ending in -s that can follow a number without being counted by it.
var notNouns = strings.Fields("bytes does has is its loses ms opens runs was")

// TestNumbersAreWrittenAsPeopleDo: no text has "(s)", and the messages of the programs have
// no plural after a number that can be 1. english.Count writes both.
func TestNumbersAreWrittenAsPeopleDo(t *testing.T) {
	either := regexp.MustCompile(`%[dsv] [A-Za-z -]*[a-z]\(s\)`)
	plural := regexp.MustCompile(`%d (?:(?:more|other|later|open|wait|possible|ephemeral|sequential|ZooKeeper) )*([a-z-]+s)\b`)
	texts, unused := 0, maps.Clone(neverOne)
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") || strings.HasPrefix(file, "internal/testing/") || strings.HasPrefix(file, "recipes/recipestest/") {
			continue
		}
		ofPrograms := strings.HasPrefix(file, "cmd/") || strings.HasPrefix(file, "internal/audit/")
		set := token.NewFileSet()
		ast.Inspect(must.Get(parser.ParseFile(set, file, nil, parser.SkipObjectResolution))(t), func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text := must.Get(strconv.Unquote(literal.Value))(t)
			texts++
			if either.MatchString(text) {
				t.Errorf("%v: use english.Count: %q", set.Position(literal.Pos()), text)
			}
			if !ofPrograms {
				return true
			}
			for _, noun := range plural.FindAllStringSubmatch(text, -1) {
				if neverOne[text] != "" {
					delete(unused, text)
				} else if !slices.Contains(notNouns, noun[1]) {
					t.Errorf("%v: %q has a plural after a number: use english.Count, or add it to neverOne: %q", set.Position(literal.Pos()), noun[0], text)
				}
			}
			return true
		})
	}
	for text := range unused {
		t.Errorf("neverOne has a text that no file has: %q", text)
	}
	if texts < 5000 {
		t.Errorf("found %d texts only", texts)
	}
}
