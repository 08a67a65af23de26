package look

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// orphan is a contender whose session no server knows: nothing deletes it, and it blocks all
// contenders behind it. ZooKeeper has left such znodes at some servers after failures of the network
// (ZOOKEEPER-2355, ZOOKEEPER-4837). A server that starts to lead deletes those that it has, but tells
// no other server.
type orphan struct {
	path    string
	znode   string
	session int64
}

// orphanage has the servers at which each orphan was found.
type orphanage map[orphan][]string

// add adds the orphans that one server has. before are the contenders that s, a session at that server,
// has read. add finds none if the servers do not answer dump.
func (o orphanage) add(ctx context.Context, s recipes.Client, security *recipes.TLS, servers []string, at, path string, before []recipes.Contender) error {
	if len(before) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	var dumps []string
	for _, server := range servers {
		dumps = append(dumps, verb.AskWord(asking, security, server, "dump"))
	}
	found := map[string]int64{}
	for _, c := range orphans(before, s.ID(), dumps) {
		found[c.Znode] = c.SessionID
	}
	if len(found) == 0 {
		return nil
	}
	// A session may have ended in between, and its znodes with it.
	after, err := s.Contenders(ctx, path)
	for _, c := range orphans(after.Contenders, s.ID(), dumps) {
		if found[c.Znode] == c.SessionID {
			one := orphan{path, c.Znode, c.SessionID}
			o[one] = append(o[one], at)
		}
	}
	return err
}

func (v *doctorVerb) orphans(found orphanage) {
	for _, o := range slices.SortedFunc(maps.Keys(found), func(a, b orphan) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.znode, b.znode)) }) {
		advice := removal(recipes.Contender{Znode: o.znode}) +
			".\nIf it does not exist there, the leader does not have it: stop each of these servers in turn, move its version-2 directories away, and start it. It then copies the data of the leader"
		v.found("line", warn, advice, "%s: %s belongs to the session %#x, which no server knows: nothing will delete it at %s, and it blocks all contenders behind it there",
			o.path, o.znode, uint64(o.session), strings.Join(found[o], ", "))
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
