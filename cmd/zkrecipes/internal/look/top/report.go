package top

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type report struct {
	t *verb.Tool

	lines  map[key]string // the state that was last written
	cycles map[string]bool
}

func (r *report) show(n *snapshot) error {
	now := time.Now()
	lines, cycles := map[key]string{}, map[string]bool{}
	for _, l := range n.lines {
		lines[l.key] = l.state(n.sessions)
		if r.lines[l.key] != lines[l.key] {
			if err := r.t.Line(l.inJSON(n.sessions, now), l.text(n.sessions, now)); err != nil {
				return err
			}
		}
	}
	if !n.whole {
		maps.Copy(lines, r.gone(lines)) // possibly not read yet, because another session was opened
	} else {
		for _, k := range slices.SortedFunc(maps.Keys(r.gone(lines)), func(a, b key) int { return cmp.Compare(a.path, b.path) }) {
			gone := verb.Object{"event", "gone", "time", now.UTC(), "path", k.path, "kind", k.kind}
			if err := r.t.Line(gone, fmt.Sprintf("%s %s no contenders", now.UTC().Format(time.RFC3339), k.path)); err != nil {
				return err
			}
		}
	}
	for _, c := range n.cycles {
		text := c.String()
		if cycles[text] = true; !r.cycles[text] {
			if err := r.t.Line(c.inJSON(now), now.UTC().Format(time.RFC3339)+" "+text); err != nil {
				return err
			}
		}
	}
	r.lines, r.cycles = lines, cycles
	return nil
}

// gone returns what was written and is not among these lines.
func (r *report) gone(lines map[key]string) map[key]string {
	gone := maps.Clone(r.lines)
	maps.DeleteFunc(gone, func(k key, _ string) bool { _, there := lines[k]; return there })
	return gone
}

// state is equal for two readings that differ only in time.
func (l *line) state(s *sessions) string {
	n, _ := l.waiters()
	var b strings.Builder
	fmt.Fprint(&b, l.name(), n, l.ending(s))
	for _, h := range l.holders() {
		fmt.Fprint(&b, placeOf(h), h.Downgraded, string(h.Data))
	}
	return b.String()
}

// ending returns the sessions in the wait queue that are about to end.
func (l *line) ending(s *sessions) (all []int64) {
	for _, c := range l.contenders {
		if _, ends := s.ending(c.SessionID); ends && !slices.Contains(all, c.SessionID) {
			all = append(all, c.SessionID)
		}
	}
	return all
}

const unknown = "?"

// cells are the columns of a table, and the values in a line of text.
func (l *line) cells(s *sessions, now time.Time) []string {
	holders := l.holders()
	who, held, host, data := "-", "-", "-", ""
	if len(holders) > 0 {
		h := holders[0]
		who, held, host, data = hex(h.SessionID), age(now, l.since[placeOf(h)]), cmp.Or(s.hosts[h.SessionID], unknown), shown(h.Data)
		if h.SessionID == 0 {
			who = "persistent" // it blocks the others until it is deleted
		}
		if more := len(holders) - 1; more > 0 {
			who += fmt.Sprintf("(+%d)", more)
		}
	}
	waiting, first := l.waiters()
	oldest, rate, ending := "-", unknown, unknown
	if waiting > 0 {
		oldest = age(now, first)
	}
	if l.rated {
		rate = fmt.Sprintf("%.3g", l.rate)
	}
	if s.known {
		ends := l.ending(s)
		if ending = fmt.Sprint(len(ends)); len(ends) > 0 {
			soonest := s.left[ends[0]]
			for _, id := range ends {
				soonest = min(soonest, s.left[id])
			}
			ending += " in " + soonest.Round(time.Second).String()
		}
	}
	return []string{l.path, l.name(), who, held, fmt.Sprint(waiting), oldest, rate, ending, host, data}
}

const header = "PATH\tKIND\tHOLDER\tHELD\tWAITING\tOLDEST\tGRANTS/S\tENDING\tHOST\tDATA"

func (l *line) text(s *sessions, now time.Time) string {
	c := l.cells(s, now)
	return fmt.Sprintf("%s %s %s holder=%s held=%s waiting=%s oldest=%s grants/s=%s ending=%s host=%s data=%s",
		now.UTC().Format(time.RFC3339), c[0], c[1], c[2], c[3], c[4], c[5], c[6], strings.ReplaceAll(c[7], " ", ","), c[8], c[9])
}

// shown is the beginning of a contender's data, on one line.
func shown(data []byte) string {
	const most = 40
	text := []rune(verb.Printable(data))
	if len(text) > most {
		return string(text[:most-3]) + "..."
	}
	return string(text)
}

// age returns how long ago a time was. The clocks of servers can be ahead of the local one.
func age(now, then time.Time) string {
	d := max(0, now.Sub(then))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

type lineJSON struct {
	Event    string       `json:"event"` // line
	Time     time.Time    `json:"time"`  // of the reading
	Path     string       `json:"path"`
	Kind     recipes.Kind `json:"kind"`
	Dialect  string       `json:"dialect,omitempty"`
	Permits  int          `json:"permits,omitempty"`
	Holders  []holderJSON `json:"holders"`
	Waiting  int          `json:"waiting"`
	Oldest   *float64     `json:"oldest_wait_seconds"` // null: no contender waits
	Rate     *float64     `json:"grants_per_second"`   // null: not known yet
	Sessions *[]endJSON   `json:"ending"`              // null: unknown
}

type holderJSON struct {
	SessionID string   `json:"session_id"`
	Znode     string   `json:"znode"`
	Token     int64    `json:"token"`
	Mode      string   `json:"mode,omitempty"`
	Joined    string   `json:"joined"`
	Held      float64  `json:"held_at_most_seconds"`
	Host      *string  `json:"host"`                 // null: unknown
	Left      *float64 `json:"session_left_seconds"` // null: unknown
	verb.Data
}

type endJSON struct {
	SessionID string  `json:"session_id"`
	Left      float64 `json:"session_left_seconds"`
}

func (l *line) inJSON(s *sessions, now time.Time) lineJSON {
	j := lineJSON{Event: "line", Time: l.read.UTC(), Path: l.path, Kind: l.kind, Dialect: string(l.dialect), Permits: l.permits}
	j.Holders = verb.List(l.holders(), func(h recipes.Contender) holderJSON {
		one := holderJSON{
			SessionID: hex(h.SessionID), Znode: h.Znode, Token: int64(h.Token), Mode: string(h.Mode), Joined: h.Since.UTC().Format(time.RFC3339Nano),
			Held: seconds(now.Sub(l.since[placeOf(h)])), Data: verb.InJSON(h.Data),
		}
		if host, ok := s.hosts[h.SessionID]; ok {
			one.Host = &host
		}
		if left, ok := s.left[h.SessionID]; ok {
			one.Left = new(left.Seconds())
		}
		return one
	})
	n, oldest := l.waiters()
	if j.Waiting = n; n > 0 {
		j.Oldest = new(seconds(now.Sub(oldest)))
	}
	if l.rated {
		j.Rate = &l.rate
	}
	if s.known {
		j.Sessions = new(verb.List(l.ending(s), func(id int64) endJSON { return endJSON{hex(id), s.left[id].Seconds()} }))
	}
	return j
}

func seconds(d time.Duration) float64 { return float64(max(0, d.Milliseconds())) / 1000 }

type waitJSON struct {
	SessionID string `json:"session_id"`
	Holds     string `json:"holds"`
	Token     int64  `json:"token"`
	Waits     string `json:"waits_for"`
	Znode     string `json:"znode"` // the znode with which the session waits
}

func (c cycle) inJSON(now time.Time) verb.Object {
	var all []waitJSON
	for i, e := range c {
		held := c[(i+len(c)-1)%len(c)]
		all = append(all, waitJSON{hex(e.waiter.session), held.line.path, int64(held.holder.token), e.line.path, e.waiter.znode})
	}
	return verb.Object{"event", "possible-deadlock", "time", now.UTC(), "sessions", all}
}

type table struct{ t *verb.Tool }

func (v *table) show(n *snapshot) error {
	if !n.whole {
		return nil
	}
	now := time.Now()
	if v.t.JSON {
		return (&report{t: v.t}).show(n)
	}
	return v.t.Result(nil, func(w io.Writer) {
		verb.Table(header, longestWaitFirst(n.lines), func(l *line) []string { return l.cells(n.sessions, now) })(w)
		for _, c := range n.cycles {
			verb.Row(w, "%v", c)
		}
		for _, note := range n.notes(now) {
			verb.Row(w, "%s", note)
		}
	})
}

// notes returns the footnotes that the table needs.
func (n *snapshot) notes(now time.Time) (notes []string) {
	newest, oldest := n.read()
	notes = append(notes, fmt.Sprintf("%s in %s, %s to %s ago, by a round of %v", english.Count(len(n.lines), "wait queue"), english.Count(n.searched, "znode"), age(now, newest), age(now, oldest), n.took.Round(100*time.Millisecond)))
	if n.sessions.why != "" {
		notes = append(notes, "sessions: "+n.sessions.why)
	}
	if n.unreadable > 0 {
		notes = append(notes, fmt.Sprintf("%s cannot be read, such as %v", english.Count(n.unreadable, "znode"), n.failed))
	}
	return notes
}

// longestWaitFirst sorts lines for people.
func longestWaitFirst(lines []*line) []*line {
	sorted := slices.Clone(lines)
	slices.SortStableFunc(sorted, func(a, b *line) int {
		n, oldest := a.waiters()
		m, other := b.waiters()
		switch {
		case n > 0 && m > 0:
			return oldest.Compare(other)
		case n > 0:
			return -1
		case m > 0:
			return 1
		}
		return 0
	})
	return sorted
}
