package audit

import (
	"cmp"
	"fmt"
	"math"
	gopath "path"
	"slices"
	"strings"
)

// line is a wait queue while the logs are read.
type line struct {
	Line
	recipe *recipe
	parent *parent

	order []*contender // for a priority lock, only those whose names are names of holders
	asks  []*contender // for a priority lock, all others

	held      int   // contenders that hold
	token     int64 // of the last grant
	freeSince int64 // since when some contenders wait and none holds; 0: otherwise
	exceeded  bool  // there are too many holders, which was reported
	dirty     bool
	passes    bool // a hold has ended in this transaction
}

// contender is a znode in a line.
type contender struct {
	place
	line    *line
	path    string
	session int64 // 0: the znode is persistent
	token   int64 // the zxid that created it
	claim   int64 // the zxid by which it claimed a number of Slots, or 0
	data    string

	joined, joinedZxid int64 // of the contender's first znode
	since              int64 // of the grant
	holds              bool
	unknown            bool // the grant was before the logs
	asked, downgraded  bool
	overtaken          int
	how                string // how it has ended; "" while it waits or holds
	ended              int64  // when the hold ended; 0: it has not ended

	beside *contender // a contender of another recipe that held at the same path when this one was granted
	from   Moment     // the transaction of that grant; if it precedes the logs, that of the contender's join
}

// lineAt returns the line of a recipe at a path.
func (a *auditor) lineAt(path string, r *recipe) *line {
	p := a.parentAt(path)
	for _, l := range p.lines {
		if l.recipe == r {
			return l
		}
	}
	l := &line{Line: Line{Path: path, Kind: r.name, Dialect: r.dialect, Ended: map[string]int{}}, recipe: r, parent: p}
	p.lines = append(p.lines, l)
	return l
}

func (a *auditor) parentAt(path string) *parent {
	p := a.parents[path]
	if p == nil {
		p = &parent{}
		a.parents[path] = p
	}
	return p
}

// setPermits notes the number of permits in the data of a path.
func (a *auditor) setPermits(path string, data []byte) {
	n := permitsIn(data)
	if p := a.parents[path]; p == nil && n > 0 || p != nil && p.permits != n {
		p = a.parentAt(path)
		first := p.permits == 0
		p.permits = n
		for _, l := range p.lines {
			if first && l.recipe.permits {
				l.ungrant(n)
			}
			a.touch(l)
		}
		if n == 0 && len(p.lines) == 0 {
			delete(a.parents, path)
		}
	}
}

// ungrant takes back the grants beyond n. The first contenders of a semaphore join before one of them
// writes the number of permits, and until then all seemed to hold.
func (l *line) ungrant(n int) {
	l.token = 0
	for i, c := range l.order {
		if i < n {
			l.token = max(l.token, c.token)
		} else if c.holds {
			c.holds = false
			l.held--
			if !c.unknown {
				l.Grants--
			}
		}
	}
	l.Most = min(l.Most, n)
}

func (a *auditor) touch(l *line) {
	if !l.dirty {
		l.dirty = true
		a.dirty = append(a.dirty, l)
	}
}

// create applies the creation of a znode, or loads it from a snapshot.
func (a *auditor) create(path string, data []byte, ephemeral bool) {
	a.setPermits(path, data)
	p, ok := placeOf(path)
	dir := gopath.Dir(path)
	if ok && p.recipe == kazooSemaphore { // other programs also name znodes by GUIDs
		parent := a.parents[dir]
		ok = ephemeral && parent != nil && parent.permits > 0
	}
	if !ok {
		a.createOther(path, data, ephemeral)
	}
	if !ok || a.byPath[path] != nil {
		return
	}
	l := a.lineAt(dir, p.recipe)
	c := &contender{place: p, line: l, path: path, token: a.header.Zxid, joined: a.header.Time, joinedZxid: a.header.Zxid}
	c.data, c.asked, c.downgraded = readData(data)
	if ephemeral {
		c.session = a.header.Session
		if a.owned[c.session] == nil {
			a.owned[c.session] = map[*contender]bool{}
		}
		a.owned[c.session][c] = true
	}
	if c.reads && l.Kind == "lock" {
		l.Kind = "shared-lock" // kazoo's locks and shared locks have one marker
	}
	a.byPath[path] = c
	a.touch(l)
	claims := a.claims(c)
	if !claims {
		l.Contenders++
	}
	if c.waits {
		l.asks = append(l.asks, c)
		return
	}
	at, _ := slices.BinarySearchFunc(l.order, c, func(other, c *contender) int {
		if other.ahead(c) {
			return -1
		}
		return 1
	})
	if at < len(l.order) && !claims && !a.loading {
		a.finding(Order, l.Path, "%s joined after %s, and is ahead of it", name(c), name(l.order[at]))
	}
	if writes := func(c *contender) bool { return !c.reads }; l.recipe == priorityLock && slices.ContainsFunc(l.order[:at], writes) && !a.loading {
		a.finding(TwoHolders, l.Path, "%s was claimed beside the writer %s", name(c), name(l.order[slices.IndexFunc(l.order, writes)]))
	}
	l.order = slices.Insert(l.order, at, c)
}

// claims reports whether the transaction replaces another znode of the contender by this one, as a
// claim of a priority lock does. If so, it copies the time of joining from that znode.
func (a *auditor) claims(c *contender) bool {
	for _, g := range a.gone {
		if g.line == c.line && g.sequence == c.sequence && g.session == c.session && g.recipe == priorityLock {
			g.how = "claimed"
			c.joined, c.joinedZxid, c.overtaken = g.joined, g.joinedZxid, g.overtaken
			return true
		}
	}
	return false
}

func (a *auditor) set(path string, data []byte) {
	a.changed[path] = true
	a.setPermits(path, data)
	if c := a.byPath[path]; c != nil {
		_, c.asked, c.downgraded = readData(data)
		c.numbered(data, a.header.Zxid)
		a.touch(c.line)
	}
}

// numbered notes that the contender has claimed a number, if the data of its znode say so.
func (c *contender) numbered(data []byte, zxid int64) {
	if c.recipe.permits && strings.HasPrefix(string(data), slotMark) {
		c.claim = zxid
	}
}

// fencing is the token that the contender has as a holder.
func (c *contender) fencing() int64 { return cmp.Or(c.claim, c.token) }

func (a *auditor) delete(path string) {
	c := a.byPath[path]
	if c == nil {
		if !a.deleteQueued(path, false) {
			a.deleteOther(path)
		}
		return
	}
	how := Broken
	switch {
	case c.session == 0:
		how = "deleted"
	case c.session == a.header.Session && (a.changed[path] || c.recipe == priorityLock && a.changed[c.line.Path]):
		how = "handoff"
	case c.session == a.header.Session:
		how = "released"
	case c.asked:
		how = Revoked
	}
	delete(a.owned[c.session], c)
	a.remove(c, how)
}

// deleteOther applies the deletion of a parent, or of a contender that joined before the logs begin.
// Those behind such a contender have waited for it.
func (a *auditor) deleteOther(path string) {
	a.setPermits(path, nil)
	p, ok := placeOf(path)
	if !ok || p.recipe == kazooSemaphore {
		return
	}
	a.lost++
	for _, c := range a.lineAt(gopath.Dir(path), p.recipe).order {
		if c.holds && c.sequence-p.sequence > 0 {
			c.since = a.header.Time
		}
	}
}

// remove takes a contender out of its line. settle ends it.
func (a *auditor) remove(c *contender, how string) {
	c.how = how
	delete(a.byPath, c.path)
	same := func(other *contender) bool { return other == c }
	l := c.line
	if len(l.order) > 0 && l.order[0] == c {
		l.order[0] = nil
		l.order = l.order[1:]
	} else {
		l.order = slices.DeleteFunc(l.order, same)
	}
	l.asks = slices.DeleteFunc(l.asks, same)
	a.gone = append(a.gone, c)
	a.touch(l)
}

// settle ends the contenders that the transaction has deleted, and then grants.
func (a *auditor) settle() {
	for _, c := range a.gone {
		c.line.passes = c.line.passes || c.holds
		a.end(c, c.how)
	}
	a.gone = a.gone[:0]
	for _, l := range a.dirty {
		a.grantAll(l)
		a.count(l)
		l.dirty, l.passes = false, false
	}
	a.dirty = a.dirty[:0]
}

// grantAll grants every contender that no contender ahead blocks. Those behind a blocked one are
// blocked too.
func (a *auditor) grantAll(l *line) {
	permits := 1
	if l.recipe.permits {
		l.Permits = cmp.Or(l.parent.permits, l.Permits) // the path may be deleted at the end
		if permits = l.parent.permits; permits == 0 || l.recipe == kazooSemaphore {
			permits = math.MaxInt // the number is unknown, or each lease is a permit
		}
	}
	writer := false // ahead
	for i, c := range l.order {
		if c.reads && writer || !c.reads && i >= permits {
			return
		}
		switch {
		case c.session == 0 && c.how == "":
			c.how = Persistent
			a.finding(Persistent, l.Path, "%s belongs to no session: it blocks the contenders behind it until it is deleted", c.path)
		case c.session != 0 && !c.holds:
			a.grant(c)
		}
		writer = writer || !c.reads && !c.downgraded
	}
}

func (a *auditor) grant(c *contender) {
	l, now := c.line, a.header.Time
	c.holds, c.since, c.unknown = true, now, a.loading
	l.held++
	l.Most = max(l.Most, l.held)
	if !c.unknown {
		l.Grants++
		if c.joinedZxid != a.header.Zxid {
			l.Wait.Add(now - c.joined)
			if l.passes {
				l.Passed++
			}
		}
	}
	if l.freeSince != 0 {
		l.Gap.Add(now - l.freeSince)
		l.freeSince = 0
	}
	if c.token < l.token && !c.unknown {
		a.finding(Token, l.Path, "the token %d of %s is smaller than the token %d of the grant before", c.token, name(c), l.token)
	}
	l.token = max(l.token, c.token)
	for _, w := range l.asks {
		if w.joinedZxid < c.joinedZxid {
			w.overtaken++
			l.Overtaken = max(l.Overtaken, w.overtaken)
		}
	}
	for _, other := range l.parent.lines {
		for _, h := range other.order {
			if other != l && h.holds && c.beside == nil { // one such contender is enough
				c.beside, c.from = h, a.moment()
			}
		}
	}
	if c.unknown { // the contender was granted at that time or later
		c.from = Moment{c.token, at(c.joined)}
	}
}

// count checks how many contenders hold, and notes since when none holds although some wait.
func (a *auditor) count(l *line) {
	permits := 1
	if l.recipe.permits {
		permits = l.parent.permits
	}
	exceeded := l.held > permits && permits > 0
	var holders []string
	if exceeded {
		writers := 0
		for _, c := range l.order {
			if c.holds {
				holders = append(holders, name(c))
				if !c.reads && !c.downgraded {
					writers++
				}
			}
		}
		exceeded = l.recipe.permits || writers > 0
	}
	if exceeded && !l.exceeded {
		a.finding(TwoHolders, l.Path, "%d contenders hold a %s: %s", l.held, l.Kind, strings.Join(holders[:min(len(holders), 5)], ", "))
	}
	l.exceeded = exceeded
	switch waiting := len(l.order) + len(l.asks) - l.held; {
	case waiting == 0 || l.held > 0:
		l.freeSince = 0
	case l.freeSince == 0:
		l.freeSince = a.header.Time
	}
}

func name(c *contender) string {
	return fmt.Sprintf("%s (session 0x%x)", gopath.Base(c.path), uint64(c.session))
}
