package look

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lines checks the paths, through any of the servers.
func (v *doctorVerb) lines(ctx context.Context, p *host.Plugin, cfg recipes.SessionConfig) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	s, err := p.Open(ctx, cfg)
	if err != nil {
		v.found("line", fail, serverAdvice(err), "%v", err)
		return
	}
	defer s.Close(ctx)
	for _, path := range v.paths {
		lines, err := s.Contenders(ctx, path)
		if err != nil {
			v.found("line", fail, exit.Advice(err), "%v", err)
			continue
		}
		v.line(path, lines)
	}
}

// line reports the contenders of a path, and for each recipe whether it would share their
// wait queue.
func (v *doctorVerb) line(path string, lines recipes.Lines) {
	var groups []string
	for _, d := range recipes.Dialects() {
		all := slices.DeleteFunc(slices.Clone(lines.Contenders), func(c recipes.Contender) bool {
			return cmp.Or(c.Dialect, recipes.ZooKeeper) != d // older plugins omit the dialect
		})
		if len(all) == 0 {
			continue
		}
		group := fmt.Sprintf("%d contender(s)", len(all))
		if verb.OtherLibrary(d) {
			group = fmt.Sprintf("%d contender(s) of %s, as the %s %s", len(all), d, kindOf(all[0]), all[0].Znode)
		}
		groups = append(groups, group)
	}
	status, advice, text := fine, "", path+": "+cmp.Or(strings.Join(groups, "; "), "no contenders")
	if join, refused := verdicts(lines.Verdicts); len(refused) > 0 {
		text += "\nthese share the wait queue: " + cmp.Or(strings.Join(join, ", "), "none")
		for _, met := range slices.Sorted(maps.Keys(refused)) {
			text += "\nthese exit with 125, because " + met + ": " + strings.Join(refused[met], ", ")
		}
		switch {
		case len(join) == 0:
			status, advice = warn, "no recipe excludes all of them, and they do not exclude each other: use the same recipe and -dialect for all clients of this path, or separate paths"
		case strings.Contains(join[0], dialectFlag):
			status, advice = warn, "to share the wait queue, use zkrecipes "+strings.Join(join, " or ")
		}
	}
	v.found("line", status, advice, "%s", text)
	for _, c := range persistent(lines.Contenders) {
		v.found("line", warn, removal(c), "%s: %s is persistent: it has the name of a contender (%s) and no session, and blocks all contenders behind it", path, c.Znode, kindOf(c))
	}
	if lines.Unknown > 0 {
		v.found("line", warn, "if they are contenders of another program, they and ours ignore each other: give that program another path", "%s: %d ephemeral sequential znode(s) of programs that zkrecipes does not know", path, lines.Unknown)
	}
}

const dialectFlag = "-dialect "

// verdicts returns the verbs that would share the wait queue of a path, and those that would
// refuse it, grouped by the contender that they would find.
func verdicts(all []recipes.Verdict) (join []string, refused map[string][]string) {
	refused = map[string][]string{}
	for _, v := range all {
		name := verbOf[v.Kind]
		if verb.OtherLibrary(v.Dialect) {
			name += " " + dialectFlag + string(v.Dialect)
		}
		if v.Foreign == nil {
			join = append(join, name)
			continue
		}
		found := fmt.Sprintf("there is a %s %s at %s", v.Foreign.Dialect, v.Foreign.Recipe, v.Foreign.Znode)
		refused[found] = append(refused[found], name)
	}
	return join, refused
}

// verbOf is the verb for each kind.
var verbOf = map[recipes.Kind]string{
	recipes.KindLock:         "lock",
	recipes.KindSharedLock:   "lock -shared",
	recipes.KindPriorityLock: "lock -priority",
	recipes.KindSemaphore:    "lock -n",
	recipes.KindElection:     "elect",
}
