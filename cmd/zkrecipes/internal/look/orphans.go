package look

import (
	"context"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// orphans warns about contenders whose session no server knows (ZOOKEEPER-4837 and others): nothing
// deletes them, and they block all contenders behind them. It needs servers that answer dump.
func (v *doctorVerb) orphans(ctx context.Context, s recipes.Client, cfg recipes.SessionConfig, path string, before []recipes.Contender) {
	if len(before) == 0 {
		return
	}
	asking, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	var dumps []string
	for _, server := range cfg.Servers {
		dumps = append(dumps, verb.AskWord(asking, cfg.TLS, server, "dump"))
	}
	found := map[string]int64{}
	for _, c := range orphans(before, s.ID(), dumps) {
		found[c.Znode] = c.SessionID
	}
	if len(found) == 0 {
		return
	}
	// A session may have ended in between, and its znodes with it.
	after, err := s.Contenders(ctx, path)
	if err != nil {
		v.found("line", fail, "", "%v", err)
		return
	}
	for _, c := range orphans(after.Contenders, s.ID(), dumps) {
		if found[c.Znode] == c.SessionID {
			v.found("line", warn, removal(c), "%s: %s belongs to the session %#x, which no server knows: nothing will delete it, and it blocks all contenders behind it", path, c.Znode, uint64(c.SessionID))
		}
	}
}

// orphans returns the contenders whose session is in no answer to dump. If own, the session of the
// caller, is in no answer either, it returns none: the servers have not reported their sessions, or
// they lag.
func orphans(all []recipes.Contender, own int64, dumps []string) (without []recipes.Contender) {
	live := map[int64]bool{}
	for _, dump := range dumps {
		maps.Copy(live, sessionsOf(dump))
	}
	for _, c := range all {
		if live[own] && c.SessionID != 0 && !live[c.SessionID] {
			without = append(without, c)
		}
	}
	return without
}

// session is a session in an answer to dump: of the leader, or with its timeout.
var session = regexp.MustCompile(`(?m)^\s*(0x[0-9a-f]+)(?:\s+\d+ms)?$`)

// sessionsOf returns the sessions in an answer to dump. The owners of znodes follow them.
func sessionsOf(dump string) map[int64]bool {
	list, _, _ := strings.Cut(dump, "ephemeral nodes dump")
	sessions := map[int64]bool{}
	for _, m := range session.FindAllStringSubmatch(list, -1) {
		if id, err := strconv.ParseUint(m[1], 0, 64); err == nil {
			sessions[int64(id)] = true
		}
	}
	return sessions
}
