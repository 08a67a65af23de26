package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lines looks at the paths that were given, through any of the servers.
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
			v.found("line", fail, adviceOn(err), "%v", err)
			continue
		}
		v.line(path, lines)
	}
}

// line says who stands at a path. Contenders of two dialects do not look for each other,
// nor do unknown ones.
func (v *doctorVerb) line(path string, lines recipes.Lines) {
	var groups []string
	dialects := map[recipes.Dialect]bool{}
	for _, d := range recipes.Dialects() {
		all := slices.DeleteFunc(slices.Clone(lines.Contenders), func(c recipes.Contender) bool {
			return cmp.Or(c.Dialect, recipes.DefaultDialect) != d // an older plugin tells none
		})
		if len(all) == 0 {
			continue
		}
		dialects[d] = true
		group := fmt.Sprintf("%d contender(s)", len(all))
		if dialect(d).other() {
			group = fmt.Sprintf("%d contender(s) of %s, as the %s %s", len(all), d, kindOf(all[0]), all[0].Znode)
		}
		groups = append(groups, group)
	}
	who := cmp.Or(strings.Join(groups, "; "), "nobody stands in line")
	switch {
	case len(dialects) > 1:
		v.found("line", warn, "give all that use this path the same -dialect, or paths of their own: they do not look for each other", "%s: %s", path, who)
	case len(dialects) == 1 && !dialects[recipes.DefaultDialect]:
		v.found("line", warn, fmt.Sprintf("zkrecipes stands in line with them with -dialect %s, and gives up without", lines.Contenders[0].Dialect), "%s: %s", path, who)
	default:
		v.found("line", fine, "", "%s: %s", path, who)
	}
	for _, c := range persistent(lines.Contenders) {
		v.found("line", warn, removal(c), "%s: %s is persistent: it has the name of a contender (%s) and no session, and blocks all behind it", path, c.Znode, kindOf(c))
	}
	if lines.Unknown > 0 {
		v.found("line", warn, "if they are contenders of another program, it looks for none of ours, and ours for none of its: give it another path", "%s: %d ephemeral sequential znode(s) of programs that zkrecipes does not know", path, lines.Unknown)
	}
}
