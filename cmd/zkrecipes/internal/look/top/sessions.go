package top

import (
	"context"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// sessions is what servers have reported about sessions, by their ids.
type sessions struct {
	known bool                    // a server has reported the deadlines
	left  map[int64]time.Duration // until the leader expires the session
	hosts map[int64]string        // the client's address
	// limit is, for each session, a third of its timeout. A client sends a ping after a third of the
	// timeout at the latest, so a session with less time left has missed one at least.
	limit map[int64]time.Duration
	why   string // the deadlines are not known
}

// ending returns the time that is left to a session, and whether the session is about to end.
func (s *sessions) ending(id int64) (left time.Duration, ends bool) {
	left, ok := s.left[id]
	return left, ok && left < s.limit[id]
}

// asker asks servers about sessions, by four-letter words.
type asker struct {
	servers []string
	word    func(ctx context.Context, server, word string) string // returns the answer, or ""
	last    *sessions
	asked   time.Time
}

// leastAsk is the minimum interval between requests: an answer lists all sessions of the
// ensemble.
const leastAsk = 2 * time.Second

// ask asks all servers, unless it has just done so. own is the id of the tool's own session, and timeout its timeout.
//
// "dump" of the leader lists when it expires each session, and that of another server the session
// timeouts. "cons" lists the connections of a server, with the clients' addresses and the session
// timeouts.
func (a *asker) ask(ctx context.Context, own int64, timeout time.Duration) {
	if a.last != nil && time.Since(a.asked) < leastAsk {
		return
	}
	a.asked = time.Now()
	s := &sessions{hosts: map[int64]string{}, limit: map[int64]time.Duration{}, why: "no server of -admin has the deadlines: the leader must be among them, and allow the four-letter word dump"}
	if len(a.servers) == 0 {
		s.why = "unknown without -admin"
	}
	if a.last != nil { // a session without a connection keeps the timeout that it had
		maps.Copy(s.limit, a.last.limit)
	}
	for _, server := range a.servers {
		connections(a.word(ctx, server, "cons"), s)
		dump := a.word(ctx, server, "dump")
		for _, m := range timeoutOf.FindAllStringSubmatch(dump, -1) {
			s.setTimeout(m[1], m[2])
		}
		if left := deadlines(dump, own, timeout); left != nil {
			s.known, s.left, s.why = true, left, ""
		}
	}
	for id := range s.limit {
		if _, lives := s.left[id]; s.known && !lives {
			delete(s.limit, id)
		}
	}
	for id := range s.left {
		if s.limit[id] == 0 {
			s.limit[id] = timeout / 3 // not known; most clients of a fleet request the same timeout
		}
	}
	a.last = s
}

// connection takes only the characters of an address or a name: whatever answers at the port of a
// server could otherwise write to the terminal.
var connection = regexp.MustCompile(`(?m)^\s*/?\[?([0-9A-Za-z.:%/_-]+?)\]?:\d+\[\d+\]\(.*\bsid=(0x[0-9a-f]+),.*\bto=(\d+),`)

var timeoutOf = regexp.MustCompile(`(?m)^(0x[0-9a-f]+)\s+(\d+)ms$`)

func connections(answer string, s *sessions) {
	for _, m := range connection.FindAllStringSubmatch(answer, -1) {
		if id, ok := s.setTimeout(m[2], m[3]); ok {
			s.hosts[id] = m[1]
		}
	}
}

func (s *sessions) setTimeout(session, milliseconds string) (id int64, ok bool) {
	id, err := sessionID(session)
	ms, wrong := strconv.Atoi(milliseconds)
	if ok = err == nil && wrong == nil; ok {
		s.limit[id] = time.Duration(ms) * time.Millisecond / 3
	}
	return id, ok
}

// deadlines reads an answer to dump: how long it is until the leader expires each session. It
// returns nil if the answer has no deadline of the tool's own session: then it is not from the
// leader, or from another ensemble.
//
// The times in the answer are those of the server's clock, in its time zone, and in seconds. So
// they are compared with the time of the tool's own session, which is one session timeout away,
// because the tool reads all the time. The result is exact to about a second and a tick of the
// server.
func deadlines(answer string, own int64, timeout time.Duration) map[int64]time.Duration {
	at := map[int64]time.Time{}
	var expire time.Time
	for text := range strings.Lines(answer) {
		text = strings.TrimSpace(text)
		if _, date, ok := strings.Cut(text, " expire at "); ok {
			expire = dateOf(strings.TrimSuffix(date, ":"))
		} else if id, err := sessionID(text); err == nil && !expire.IsZero() {
			at[id] = expire
		}
	}
	ours, ok := at[own]
	if !ok {
		return nil
	}
	left := map[int64]time.Duration{}
	for id, t := range at {
		left[id] = max(0, timeout-ours.Sub(t))
	}
	return left
}

// dateOf parses a date of Java, without its time zone. It returns the zero time for another text.
func dateOf(text string) time.Time {
	words := strings.Fields(text) // Thu Nov 26 05:11:24 UTC 2026
	if len(words) != 6 {
		return time.Time{}
	}
	t, _ := time.Parse(time.ANSIC, strings.Join(append(words[:4], words[5]), " "))
	return t
}

func sessionID(text string) (int64, error) {
	if !strings.HasPrefix(text, "0x") {
		return 0, strconv.ErrSyntax
	}
	id, err := strconv.ParseUint(text, 0, 64)
	return int64(id), err
}
