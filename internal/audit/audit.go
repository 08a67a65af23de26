package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/txnlog"
)

// Config says what to audit.
type Config struct {
	Path     string                  // the audit covers lines at and below it; as the server sees the path: with the chroot
	Hold     func(Hold) error        // called at the end of each hold and, for the remaining holds, at the end of the logs; may be nil
	Writes   []Write                 // of the application, to check
	Progress func(read, total int64) // called after each record and each log, with bytes of the logs; may be nil
}

// Write is a write of the application to its store, with the token that it was made with.
type Write struct {
	Time  time.Time `json:"time"`
	Token int64     `json:"token"`
}

// ErrInput means that the files are not the logs of one server, or have no line at the path.
var ErrInput = errors.New("nothing can be checked")

// auditor is the state while the logs are read.
type auditor struct {
	Config
	report  *Report
	root    string // the path without a final slash: "" for "/"
	parents map[string]*parent
	byPath  map[string]*contender
	owned   map[int64]map[*contender]bool // by session
	writes  map[int64][]time.Time         // by token
	queues  queues

	header   txnlog.Header // of the last transaction that was applied; its time as clock returns it
	recent   [1 << 16]txnlog.Header
	last     int64 // zxid; before the first transaction -1
	previous int64 // zxid of the record before, which can be smaller
	skip     int64 // transactions up to this zxid are in the snapshot
	lost     int   // deletions of contenders that the state did not have
	dirty    []*line
	changed  map[string]bool // paths that the transaction has set
	gone     []*contender    // that the transaction has deleted
	loading  bool            // a snapshot
	err      error           // of Config.Hold
}

// parent is a znode with lines, or with a number of permits.
type parent struct {
	permits int
	lines   []*line
}

// Audit reads the logs. An error means that nothing is proved: a file cannot be read, the logs are
// those of several servers, or there is no line (ErrInput). What the files do not show is in Report.Gaps.
func Audit(ctx context.Context, f *txnlog.Files, cfg Config) (*Report, error) {
	a := &auditor{
		Config: cfg, root: strings.TrimSuffix(cfg.Path, "/"), last: -1, previous: -1,
		report:  &Report{Path: cfg.Path, Logs: len(f.Logs), Gaps: []string{}, Lines: []*Line{}, Queues: []*Queue{}, Decisions: []Decision{}, Violations: []Finding{}, Events: []Finding{}},
		changed: map[string]bool{}, writes: map[int64][]time.Time{}, parents: map[string]*parent{},
		queues: queues{byPath: map[string]*queue{}},
	}
	if cfg.Writes != nil {
		a.report.Writes = &Checks{Writes: len(cfg.Writes)}
		for _, w := range cfg.Writes {
			a.writes[w.Token] = append(a.writes[w.Token], w.Time)
		}
	}
	a.forget()
	for _, name := range f.Empty {
		a.gap("%s has no record", name)
	}
	var read int64
	for _, file := range f.Logs {
		info, err := os.Stat(file.Name)
		if err == nil {
			err = a.readLog(ctx, f, file, read)
		}
		if err != nil {
			return nil, err
		}
		read += info.Size() // with the zeros at its end
		if a.Progress != nil {
			a.Progress(read, f.Bytes)
		}
	}
	return a.finish()
}

// gap notes what the files do not show.
func (a *auditor) gap(format string, args ...any) {
	const most = 100
	switch n := len(a.report.Gaps); {
	case n < most:
		a.report.Gaps = append(a.report.Gaps, fmt.Sprintf(format, args...))
	case n == most:
		a.report.Gaps = append(a.report.Gaps, "there are more gaps")
	}
}

// forget drops the state: nothing is known about the znodes that exist.
func (a *auditor) forget() {
	for _, c := range a.byPath {
		a.end(c, "unknown")
	}
	a.byPath, a.owned = map[string]*contender{}, map[int64]map[*contender]bool{}
	a.queues.claims, a.queues.owned, a.queues.decided = map[string]*claim{}, map[int64]map[string]bool{}, map[string][2]string{}
	for _, q := range a.queues.byPath {
		clear(q.elements)
	}
	for path, p := range a.parents {
		for _, l := range p.lines {
			l.order, l.asks, l.held, l.freeSince = nil, nil, 0, 0
		}
		a.setPermits(path, nil)
	}
}

func (a *auditor) readLog(ctx context.Context, files *txnlog.Files, f txnlog.File, before int64) error {
	r, err := os.Open(f.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	log, _, err := txnlog.Open(r)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	var changes []txnlog.Change
	for {
		err := log.Next()
		if err == nil {
			changes, err = a.transaction(files, log, changes[:0])
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, txnlog.ErrTorn), errors.Is(err, txnlog.ErrCorrupt):
			a.gap("%s: %v; the rest of the file was not read", f.Name, err)
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if a.Progress != nil {
			a.Progress(before+log.Offset(), files.Bytes)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// transaction applies one transaction.
func (a *auditor) transaction(files *txnlog.Files, log *txnlog.Log, changes []txnlog.Change) ([]txnlog.Change, error) {
	h := log.Header()
	before := a.previous
	a.previous = h.Zxid
	if h.Zxid <= a.last {
		return changes, a.repeated(h)
	}
	switch {
	case before < a.last && txnlog.Follows(before, h.Zxid) && h.Zxid != a.last+1:
		a.gap("the transactions from 0x%x to 0x%x may not have been committed: the leader has not sent them again", before+1, a.last)
	case a.last < 0, !txnlog.Follows(a.last, h.Zxid), h.Zxid != a.last+1 && files.Between(a.last, h.Zxid):
		if err := a.loadBefore(files, h.Zxid); err != nil {
			return changes, err
		}
	}
	a.header, a.last = h, h.Zxid
	a.header.Time = a.clock(h)
	a.recent[h.Zxid%int64(len(a.recent))] = h
	if h.Zxid <= a.skip {
		return changes, nil
	}
	if a.report.Transactions == 0 {
		a.report.From = a.moment()
	}
	a.report.Transactions++
	a.report.To = a.moment()
	if h.Type == txnlog.Error || h.Type == txnlog.CreateSession {
		return changes, nil
	}
	changes, err := log.Changes(changes)
	if err != nil {
		return changes, err
	}
	a.queues.alone = len(changes) == 1
	for i := range changes {
		a.apply(&changes[i])
	}
	if len(a.dirty) > 0 {
		a.settle()
	}
	clear(a.changed)
	return changes, a.err
}

// repeated handles a transaction that was applied. A follower that loses its leader logs again what
// the next one sends from its last committed transaction on.
func (a *auditor) repeated(h txnlog.Header) error {
	if known := a.recent[h.Zxid%int64(len(a.recent))]; known.Zxid == h.Zxid && known != h {
		return fmt.Errorf("%w: there are two transactions 0x%x: give the logs of one server only", ErrInput, h.Zxid)
	}
	return nil
}

// loadBefore loads a snapshot of the state before a transaction that does not follow the previous
// one.
func (a *auditor) loadBefore(files *txnlog.Files, next int64) error {
	if a.last >= 0 {
		a.gap("no transactions from 0x%x to 0x%x: their logs are missing, or the leader has sent a snapshot instead", a.last+1, next-1)
		a.forget()
	}
	fresh := a.last < 0 && txnlog.First(next)
	for base := files.Base(next); base != nil && !(fresh && base.Zxid >= next); {
		err := a.load(base)
		if err == nil {
			if base.Zxid >= next {
				a.gap("the transactions from 0x%x to 0x%x were not checked: the first snapshot has their result", next, base.Zxid)
			}
			a.skip = base.Zxid
			return nil
		}
		if !errors.Is(err, txnlog.ErrTorn) && !errors.Is(err, txnlog.ErrCorrupt) {
			return err
		}
		a.gap("%v; it was not used", err)
		files.Snapshots = slices.DeleteFunc(files.Snapshots, func(s txnlog.File) bool { return s.Name == base.Name })
		base = files.Base(next)
	}
	if !fresh {
		a.gap("no snapshot has the state before transaction 0x%x: contenders that had joined before are unknown until they leave", next)
	}
	return nil
}

// load loads a snapshot. It skips znodes that later transactions have created.
func (a *auditor) load(f *txnlog.File) error {
	r, err := os.Open(f.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	_, snapshot, err := txnlog.Open(r)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	type node struct {
		path    string
		data    []byte
		header  txnlog.Header // of its creation
		changed int64         // the znode's mzxid
	}
	var nodes []node // used only if the checksum is right
	err = snapshot.Read(nil, func(n *txnlog.Node) {
		owner := n.EphemeralOwner
		if owner == -1<<63 || byte(owner>>56) == 0xff { // a container, or a time to live
			owner = 0
		}
		if n.Czxid > f.Zxid || !a.below(n.Path) {
			return
		}
		if data, ok := needed(n.Path, n.Data, owner != 0); ok {
			nodes = append(nodes, node{string(n.Path), bytes.Clone(data), txnlog.Header{Session: owner, Zxid: n.Czxid, Time: n.Ctime}, n.Mzxid})
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	slices.SortFunc(nodes, func(x, y node) int { return cmp.Compare(x.header.Zxid, y.header.Zxid) }) // elements before their claims
	current := a.header
	a.loading = true
	for _, n := range nodes {
		a.header = n.header
		a.header.Time = a.clock(n.header)
		a.create(n.path, n.data, n.header.Session != 0)
		if c := a.byPath[n.path]; c != nil {
			c.numbered(n.data, n.changed)
		}
	}
	a.header = current
	a.settle()
	a.loading = false
	return nil
}

// clock returns the time of a transaction. JSON has years of four digits, and durations between
// such times fit into milliseconds. A time outside that range becomes the nearest time inside it.
func (a *auditor) clock(h txnlog.Header) int64 {
	ms := min(max(h.Time, 0), latest)
	if ms != h.Time {
		a.gap("the time of transaction 0x%x is %d ms since 1970, and counts as %s: the leader's clock was wrong", h.Zxid, h.Time, at(ms).Format(stamp))
	}
	return ms
}

// latest is the last millisecond of the year 9999, since 1970.
const latest = 253_402_300_799_999

// below reports whether the path is the audited one, or below it.
func (a *auditor) below(path []byte) bool {
	return len(path) >= len(a.root) && string(path[:len(a.root)]) == a.root && (len(path) == len(a.root) || path[len(a.root)] == '/')
}

func (a *auditor) apply(c *txnlog.Change) {
	switch {
	case c.Type == txnlog.CloseSession:
		how := Expired
		if a.header.Cxid != 0 {
			how = "closed"
		}
		for _, path := range c.Deleted { // the state may lack some of the contenders
			if a.below(path) && a.byPath[string(path)] == nil {
				a.deleteOther(string(path))
			}
		}
		byToken := func(c, other *contender) int { return cmp.Compare(c.token, other.token) }
		for _, owned := range slices.SortedFunc(maps.Keys(a.owned[a.header.Session]), byToken) {
			a.remove(owned, how)
		}
		for _, path := range slices.Sorted(maps.Keys(a.queues.owned[a.header.Session])) { // claims of a queue first
			a.deleteQueued(path, true)
		}
		delete(a.queues.owned, a.header.Session)
		delete(a.owned, a.header.Session)
	case !a.below(c.Path):
	case c.Type == txnlog.Create:
		a.create(string(c.Path), c.Data, c.Ephemeral)
	case c.Type == txnlog.SetData:
		a.set(string(c.Path), c.Data)
	case c.Type == txnlog.Delete:
		a.delete(string(c.Path))
	}
}

func (a *auditor) moment() Moment { return Moment{a.header.Zxid, at(a.header.Time)} }

// finding reports a violation or an event.
func (a *auditor) finding(kind, line, format string, args ...any) {
	list := &a.report.Violations
	if slices.Contains([]string{Expired, Revoked, Removed, Unclaimed, Persistent}, kind) {
		list = &a.report.Events
	}
	if len(*list) >= MaxFindings {
		a.report.Omitted++
		return
	}
	*list = append(*list, Finding{a.moment(), kind, line, fmt.Sprintf(format, args...)})
}
