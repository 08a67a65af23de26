package audit

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Report is the result of an audit. Its JSON form is stable: docs/tool.md describes it.
type Report struct {
	Path         string     `json:"path"`
	Logs         int        `json:"logs"`         // files
	Transactions int64      `json:"transactions"` // that were checked, at any path
	From         Moment     `json:"from"`
	To           Moment     `json:"to"`
	Gaps         []string   `json:"gaps"` // what the files do not show, as sentences
	Lines        []*Line    `json:"lines"`
	Queues       []*Queue   `json:"queues"`
	Decisions    []Decision `json:"decisions"` // at most MaxFindings
	Violations   []Finding  `json:"violations"`
	Events       []Finding  `json:"events"`
	Omitted      int        `json:"omitted"` // violations and events beyond the first MaxFindings of each
	Writes       *Checks    `json:"writes,omitempty"`
}

// Moment is a transaction.
type Moment struct {
	Zxid int64     `json:"zxid"`
	Time time.Time `json:"time"`
}

// Line is one wait queue: the contenders of one recipe at one path.
type Line struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Dialect string `json:"dialect"`           // the library whose names the znodes have
	Permits int    `json:"permits,omitempty"` // of a semaphore, at the end; 0: unknown
	Most    int    `json:"most"`              // holders at a time

	Contenders int       `json:"contenders"` // that have joined
	Grants     int       `json:"grants"`
	Wait       Durations `json:"wait"` // of grants that had to wait
	Hold       Durations `json:"hold"` // of grants that have ended
	// Gap is the time in which no contender held although some waited: from a release to the claim
	// of a priority lock. The other recipes have none.
	Gap Durations `json:"gap"`

	// Ended counts the holds that have ended, by Hold.EndedBy.
	Ended map[string]int `json:"ended"`

	Passed int `json:"passed"` // how many releases or losses granted a waiter in the same transaction

	Left      int       `json:"left"`      // contenders that gave up, or whose session ended, before a grant
	InVain    Durations `json:"in_vain"`   // how long they had waited
	Refused   int       `json:"refused"`   // contenders that met another recipe, and left at once
	Overtaken int       `json:"overtaken"` // the most grants to later contenders while one waited
	Waiting   int       `json:"waiting"`   // at the end
	Holding   int       `json:"holding"`   // at the end
}

// Queue identifies the wait queue among those of a report, like [Hold.Queue]. It stays the same when
// kazoo's lock becomes a shared lock, at its first reader.
func (l *Line) Queue() string { return queueName(l.Path, l.Dialect, l.Kind) }

func queueName(path, dialect, kind string) string {
	if dialect == "kazoo" && kind == "shared-lock" {
		kind = "lock"
	}
	return path + " " + dialect + " " + kind
}

// Finding is a violation or an event.
type Finding struct {
	Moment
	Kind string `json:"kind"`
	Line string `json:"line"` // the path
	Text string `json:"text"`
}

const (
	// Kinds of violations.

	TwoHolders = "two-holders" // more holders than the recipe allows
	Beside     = "beside"      // contenders of two recipes, which ignore each other, held at one path
	Order      = "order"       // a contender got ahead of an earlier one
	Token      = "token"       // a grant has a smaller token than the one before
	Broken     = "broken"      // another client has deleted the znode of a holder, or of a consumer's claim
	LateWrite  = "late-write"  // a write of the application came after the hold of its token had ended

	TwoClaims    = "two-claims"    // two consumers have the same element of a queue
	Stolen       = "stolen"        // an element was deleted while another consumer had it
	TwoDecisions = "two-decisions" // a two-phase commit was decided in two ways

	// Kinds of events.

	Expired    = "expired"    // a session expired while it held
	Revoked    = "revoked"    // another client has deleted the znode of a holder that it had asked to give way
	Removed    = "removed"    // another client has deleted a waiter's znode
	Unclaimed  = "unclaimed"  // an element of a queue was deleted, and not by a consumer
	Persistent = "persistent" // a znode without a session blocks all contenders behind it
)

// MaxFindings is how many violations, and how many events, a report lists.
const MaxFindings = 1000

// Refusal is how long a contender of zkrecipes may take to leave, after it has found one of another
// recipe. It leaves after one listing of the path.
const Refusal = time.Second

// Hold is one hold, from its grant to its end.
type Hold struct {
	Line    string    `json:"line"`
	Kind    string    `json:"kind"`
	Dialect string    `json:"dialect"` // of the line
	Reads   bool      `json:"reads,omitempty"`
	Znode   string    `json:"znode"`
	Session string    `json:"session_id"`
	Data    string    `json:"data,omitempty"` // the beginning of the data
	Token   int64     `json:"token"`
	Joined  time.Time `json:"joined"`
	Granted time.Time `json:"granted,omitzero"` // zero: before the logs
	Ended   time.Time `json:"ended,omitzero"`   // zero: it is held at the end of the logs
	EndedBy string    `json:"ended_by,omitempty"`
	EndZxid int64     `json:"end_zxid,omitempty"`
}

// Queue identifies the wait queue, like [Line.Queue].
func (h Hold) Queue() string { return queueName(h.Line, h.Dialect, h.Kind) }

// Checks is the result of comparing the application's writes with the holds.
type Checks struct {
	Writes  int `json:"writes"`
	Held    int `json:"held"`    // made while the hold of that token existed
	Early   int `json:"early"`   // before the grant: the clocks differ
	Late    int `json:"late"`    // after the end of the hold
	Unknown int `json:"unknown"` // with a token of no hold in the logs
}

// Durations is a distribution of durations in milliseconds. Above a second it keeps ten bits of each,
// so quantiles are up to 0.2 % too small.
type Durations struct {
	counts map[int64]int
	n      int
	max    int64
}

// Add adds a duration in milliseconds.
func (d *Durations) Add(ms int64) {
	ms = max(ms, 0)
	if d.counts == nil {
		d.counts = map[int64]int{}
	}
	low := max(bits.Len64(uint64(ms))-10, 0)
	d.counts[ms>>low<<low]++
	d.n++
	d.max = max(d.max, ms)
}

// Count returns how many durations were added.
func (d *Durations) Count() int { return d.n }

// Quantile returns the smallest duration that the fraction q of all durations do not exceed.
// Quantile(1) is the largest. Above 292 years it is the largest time.Duration.
func (d *Durations) Quantile(q float64) time.Duration { return milliseconds(d.quantile(q)) }

// milliseconds converts a duration, and caps it at the largest time.Duration.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// quantile is Quantile in milliseconds.
func (d *Durations) quantile(q float64) int64 {
	keys := make([]int64, 0, len(d.counts))
	for k := range d.counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	seen, found := 0, int64(0)
	for _, k := range keys {
		if seen += d.counts[k]; float64(seen) >= q*float64(d.n) {
			found = k
			break
		}
	}
	if q == 1 {
		found = d.max
	}
	return found
}

// MarshalJSON implements json.Marshaler.
func (d Durations) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Count int   `json:"count"`
		P50   int64 `json:"p50_ms"`
		P99   int64 `json:"p99_ms"`
		Max   int64 `json:"max_ms"`
	}{d.n, d.quantile(0.5), d.quantile(0.99), d.max})
}
