package audit

import (
	"cmp"
	"fmt"
	gopath "path"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/english"
)

// end ends a contender that was deleted. how is the reason.
func (a *auditor) end(c *contender, how string) {
	l, now := c.line, a.header.Time
	if c.holds {
		l.held--
	}
	if how == "claimed" {
		return
	}
	if !c.holds {
		if c.session == 0 || how == "unknown" {
			return
		}
		l.Left++
		l.InVain.Add(now - c.joined)
		if how == Broken || how == Revoked {
			a.finding(Removed, l.Path, "session 0x%x deleted the waiter %s", uint64(a.header.Session), name(c))
		}
		return
	}
	c.ended = now
	own := how == "released" || how == "handoff" || how == "closed"
	switch {
	case c.beside == nil || how == "unknown":
	case own && now-c.from.Time.UnixMilli() < Refusal.Milliseconds() && len(a.writes[c.fencing()]) == 0: // a refused contender has no token to write with
		l.Refused++
		if !c.unknown {
			l.Grants--
		}
		return
	default:
		a.besides(c)
	}
	c.beside = nil // a later contender may refer to c, and would keep all earlier ones in memory
	if !c.unknown && how != "unknown" {
		l.Hold.Add(now - c.since)
	}
	held := "held"
	if !c.unknown {
		held = fmt.Sprintf("had held for %v", milliseconds(max(now-c.since, 0)))
	}
	l.Ended[how]++
	switch how {
	case Expired:
		a.finding(Expired, l.Path, "the session of %s expired; it %s", name(c), held)
	case Revoked, Broken:
		a.finding(how, l.Path, "session 0x%x deleted the znode of %s, which %s", uint64(a.header.Session), name(c), held)
	}
	a.emit(c, how)
}

// besides reports, at the transaction of its grant, that c was granted beside another contender.
func (a *auditor) besides(c *contender) {
	current := a.header
	a.header.Zxid, a.header.Time = c.from.Zxid, c.from.Time.UnixMilli()
	late, early := c.recipe, c.beside.recipe
	a.finding(Beside, c.line.Path, "%s (%s %s) was granted while %s (%s %s) held, for %v: these recipes ignore each other", name(c), late.dialect, late.name, name(c.beside), early.dialect, early.name,
		milliseconds(max(cmp.Or(c.beside.ended, current.Time)-a.header.Time, 0)))
	a.header = current
}

// emit passes a hold to the caller, and checks the writes that were made with its token. how is "" at
// the end of the logs.
func (a *auditor) emit(c *contender, how string) {
	h := Hold{
		Line: c.line.Path, Kind: c.line.Kind, Dialect: c.line.Dialect, Reads: c.reads, Znode: gopath.Base(c.path), Session: fmt.Sprintf("0x%x", uint64(c.session)),
		Data: c.data, Token: c.fencing(), EndedBy: how, Joined: at(c.joined),
	}
	if !c.unknown {
		h.Granted = at(c.since)
	}
	if how != "" && how != "unknown" {
		h.Ended, h.EndZxid = at(a.header.Time), a.header.Zxid
	}
	a.check(h)
	if a.Hold != nil && a.err == nil {
		a.err = a.Hold(h)
	}
}

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func (a *auditor) check(h Hold) {
	for _, t := range a.writes[h.Token] {
		switch {
		case h.EndedBy == "unknown":
			a.report.Writes.Unknown++
		case !h.Ended.IsZero() && t.After(h.Ended):
			a.report.Writes.Late++
			a.finding(LateWrite, h.Line, "the write with token %d at %s came %v after the hold of session %s had ended (%s)", h.Token, t.UTC().Format(stamp), t.Sub(h.Ended), h.Session, h.EndedBy)
		case t.Before(h.Granted): // the zero time of a grant before the logs is before all
			a.report.Writes.Early++
		default:
			a.report.Writes.Held++
		}
	}
	delete(a.writes, h.Token)
}

// stamp is the form of times in texts.
const stamp = "2006-01-02T15:04:05.000Z07:00"

// finish completes the report at the end of the logs.
func (a *auditor) finish() (*Report, error) {
	for _, p := range a.parents {
		for _, l := range p.lines {
			a.finishLine(l)
			a.report.Lines = append(a.report.Lines, &l.Line)
		}
	}
	a.finishQueues()
	slices.SortFunc(a.report.Lines, func(x, y *Line) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Dialect, y.Dialect))
	})
	for _, times := range a.writes {
		a.report.Writes.Unknown += len(times)
	}
	if a.lost > 0 {
		a.gap("%s left whose joining is not in the files", english.Count(a.lost, "contender"))
	}
	switch {
	case a.err != nil:
		return nil, a.err
	case len(a.report.Lines)+len(a.report.Queues)+len(a.report.Decisions) == 0:
		return nil, fmt.Errorf("%w: no wait queue, queue or decision is at or below %s in these files: give the path with the chroot", ErrInput, a.Path)
	}
	return a.report, nil
}

// finishLine counts who holds and who waits at the end.
func (a *auditor) finishLine(l *line) {
	for _, c := range slices.Concat(l.order, l.asks) {
		switch {
		case c.holds:
			l.Holding++
			if c.beside != nil && a.header.Time-c.from.Time.UnixMilli() >= Refusal.Milliseconds() {
				a.besides(c)
			}
			a.emit(c, "")
		case c.session != 0:
			l.Waiting++
		}
	}
}
