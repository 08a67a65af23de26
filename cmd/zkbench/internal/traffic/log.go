// Package traffic has the acquisitions of a production system, and predicts their waits. They come
// from an audit of its transaction logs, and the servers' load from replies to mntr.
//
//  1. [Read] the output of zkrecipes audit -holds -format=json.
//  2. [Log.Split] divides its time into a part to fit and a part to hold out.
//  3. [Path.Predict] fits, predicts the part that was held out, and then predicts from all.
//  4. [Load] is what the replies to mntr of one server say.
//
// # The model
//
// A contender waits for the holds ahead of it, and for nothing else. In a transaction log a grant is
// the transaction that ends the hold before it. So a hold contains the handoff, and waits follow
// from arrivals and holds alone (Lindley's equation; for n permits that of Kiefer and Wolfowitz).
// Read compares the recorded waits with those that follow, and Predict refuses a path where they
// differ.
//
// Predict draws blocks of consecutive arrivals with their holds, so that bursts stay bursts, and
// computes the waits. With Poisson arrivals that is the queue M/G/1. An interval is that of 95% of
// the draws. It contains the error of the fit, and the scatter of a time as long as the part that
// was held out.
package traffic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/audit"
)

// Log has the acquisitions of an audit.
type Log struct {
	From, To     time.Time
	Transactions int64 // at any path
	Gaps         []string
	Paths        []*Path  // by name
	Others       []*Path  // by name; their waits cannot be predicted
	Strange      []string // why not
}

// Path is a line of an audit: a lock, an election or a semaphore at one path.
type Path struct {
	Name, Kind   string
	Permits      int
	Acquisitions []Acquisition // by arrival; those that were granted and have ended in the log
	Cut          int           // holds at the ends of the log, which are not among Acquisitions
}

// Acquisition is one acquisition that was granted.
type Acquisition struct {
	At         time.Time // when the contender joined
	Wait, Hold time.Duration
	Session    string

	Reads    bool // as a reader, of a shared or priority lock
	Priority int  // of a priority lock
}

const howTo = "; make the file with: zkrecipes audit -holds -format=json PATH LOG"

// Read reads the output of zkrecipes audit -holds -format=json: a hold on each line, and then the
// report. below is the path at or below which lines count. An error says what is wrong with the
// file.
func Read(r io.Reader, below string) (*Log, error) {
	paths := map[string]*Path{}
	tokens := map[string]bool{}
	var report *audit.Report
	holds := 0
	in := json.NewDecoder(r)
	for {
		var v struct { // a hold and a report have no key in common
			audit.Hold
			audit.Report
		}
		err := in.Decode(&v)
		switch {
		case errors.Is(err, io.EOF) && report != nil && holds == 0:
			return nil, errors.New("it has a report without holds" + howTo)
		case errors.Is(err, io.EOF) && report != nil:
			return newLog(report, paths, below)
		case errors.Is(err, io.EOF) && holds > 0, errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("it is truncated: it ends without the report" + howTo)
		case err != nil:
			return nil, errors.New("it is not an audit" + howTo)
		case report != nil:
			return nil, errors.New("it continues after its report; give the output of one audit")
		case v.Transactions > 0 && !v.To.Time.After(v.From.Time):
			return nil, fmt.Errorf("its log ends at %s and does not begin before: the leader's clock has jumped, or the log is too short", stamp(v.To.Time))
		case v.Transactions > 0:
			report = &v.Report
			continue
		case v.Line == "" || v.Token == 0 || v.Joined.IsZero():
			return nil, errors.New("it is not an audit" + howTo)
		}
		h := v.Hold
		holds++
		key := fmt.Sprint(h.Line, " ", h.Token, " ", h.Znode)
		if tokens[key] {
			return nil, fmt.Errorf("the hold of %s with token %d is there twice: the logs overlap; audit the logs of one server once", h.Line, h.Token)
		}
		tokens[key] = true
		p := paths[h.Queue()]
		if p == nil {
			p = &Path{Name: h.Line, Permits: 1}
			paths[h.Queue()] = p
		}
		p.add(h)
	}
}

// claimed matches the name of a holder of a priority lock.
var claimed = regexp.MustCompile(`-(?:reading|writing)-([0-9]{2})-[^/]*$`)

func (p *Path) add(h audit.Hold) {
	if h.Reads {
		p.Permits = 0 // readers share it
	}
	priority := 0
	if m := claimed.FindStringSubmatch(h.Znode); m != nil {
		priority, _ = strconv.Atoi(m[1]) // two digits
	}
	switch {
	case h.Granted.IsZero() || h.Ended.IsZero():
		p.Cut++
	default:
		p.Acquisitions = append(p.Acquisitions, Acquisition{h.Joined, max(h.Granted.Sub(h.Joined), 0), max(h.Ended.Sub(h.Granted), 0), h.Session, h.Reads, priority})
	}
}

func newLog(r *audit.Report, paths map[string]*Path, below string) (*Log, error) {
	l := &Log{From: r.From.Time, To: r.To.Time, Transactions: r.Transactions, Gaps: r.Gaps}
	lines := map[string]*audit.Line{}
	for _, line := range r.Lines {
		lines[line.Queue()] = line
	}
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		p, line := paths[key], lines[key]
		if line == nil {
			return nil, fmt.Errorf("it has holds of %s, and its report has no such line", p.Name)
		}
		prefix := strings.TrimSuffix(below, "/")
		if p.Name != prefix && !strings.HasPrefix(p.Name, prefix+"/") {
			continue
		}
		if p.Kind = line.Kind; p.Kind == "semaphore" {
			p.Permits = line.Permits
		}
		whole := slices.DeleteFunc(p.Acquisitions, func(a Acquisition) bool { return a.At.Before(l.From) }) // from a snapshot
		p.Cut, p.Acquisitions = p.Cut+len(p.Acquisitions)-len(whole), whole
		slices.SortStableFunc(p.Acquisitions, func(a, b Acquisition) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Wait, b.Wait)) })
		l.Paths = append(l.Paths, p)
	}
	if len(l.Paths) == 0 {
		return nil, fmt.Errorf("no line at or below %s has a hold; give -path as the servers see it, with the chroot", below)
	}
	slices.SortStableFunc(l.Paths, func(a, b *Path) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind)) })
	l.Paths = slices.DeleteFunc(l.Paths, func(p *Path) bool {
		why := p.strange()
		if why != "" {
			l.Others = append(l.Others, p)
			l.Strange = append(l.Strange, fmt.Sprintf("%s, %s: %s", p.Name, p.Kind, why))
		}
		return why != ""
	})
	return l, nil
}

// strange returns why the waits of a path cannot be computed from arrivals and holds.
func (p *Path) strange() string {
	switch {
	case p.Kind == "priority-lock":
		return "its order is not that of the arrivals"
	case p.Kind == "semaphore" && p.Permits == 0:
		return "its number of permits is not in the log"
	case p.Permits == 0:
		return "readers hold it together"
	}
	return ""
}

// Split returns when the part that is held out begins, and names that part: the last hour, or the
// last quarter of a log of less than two hours.
func (l *Log) Split() (at time.Time, part string) {
	if l.To.Sub(l.From) >= 2*time.Hour {
		return l.To.Add(-time.Hour), "the last hour"
	}
	part = fmt.Sprintf("the last quarter of the log, %v", (l.To.Sub(l.From) / 4).Round(time.Second))
	return l.To.Add(-l.To.Sub(l.From) / 4), part
}
