package partition_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

var only = flag.String("faults", "", "TestPartition makes only faults that match this regular expression")

// TestPartition lets clients use the recipes on three real servers, while the network
// between all of them breaks, and processes die and freeze. It checks the answers that the
// clients got and the final state of ZooKeeper:
//
//   - A write under the guard of a hold or a leadership, or to a store that compares
//     tokens, is applied once, and in the order of the tokens.
//   - A store that does not compare tokens loses writes. This shows that the faults are
//     hard enough.
//   - ZooKeeper's logs show the same grants as the clients, and no lock was granted twice.
//     Curator
//     and kazoo contend with ours for two of the locks.
//   - A reader never sees half of a writer's change.
//   - All parties of a transaction get the same decision, and commit only if all voted
//     for it.
//   - The histories of counters, keys of a configuration and queues are linearizable.
func TestPartition(t *testing.T) {
	text := os.Getenv(lengthEnv)
	if text == "" {
		t.Skip("run it with .ci/suite partition")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("%v of faults in the order of seed %d", length, seed)
	wanted := regexp.MustCompile(*only)
	r := newRun(t)
	r.begin()
	random := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	var next []fault
	for time.Since(began) < length && !t.Failed() {
		if len(next) == 0 {
			next = slices.DeleteFunc(kinds(), func(f fault) bool { return !wanted.MatchString(f.String()) })
			random.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
			// checkStores needs this fault: the store without tokens must lose a write.
			if i := slices.IndexFunc(next, func(f fault) bool { return f.who == "holder" && f.how == frozen }); i >= 0 {
				next[0], next[i] = next[i], next[0]
			}
		}
		r.inject(next[0])
		next = next[1:]
	}
	took := time.Since(began)
	r.stop()
	t.Logf("%d faults in %v, %d messages", len(r.faults), took.Round(time.Second), len(r.messages))
	r.check()
}

// check makes all checks and reports. It returns how many times two clients considered a lock
// or a leadership held at the same time.
func (r *run) check() (overlaps int) {
	if len(r.ended) > 0 {
		r.Logf("SERVERS ENDED BY THEMSELVES, %d times, and were started again: %q", len(r.ended), r.ended)
	}
	r.checkGuarded(guarded, "/lock")
	r.checkGuarded("term", "/election")
	r.checkGuarded(left, "/shared")
	for _, l := range libraries {
		r.checkGuarded(l.name, l.path)
	}
	r.checkStores()
	r.checkReaders()
	r.checkTransactions()
	r.checkHistories()
	r.checkLogs()
	overlaps = r.reportOverlaps("/lock") + r.reportOverlaps("/election")
	for _, l := range libraries {
		overlaps += r.reportOverlaps(l.path)
	}
	r.reportAvailability()
	r.reportSurvival()
	return overlaps
}

// checkGuarded checks a register that is written only under a guard. Each acknowledged write
// must count once, and each write with an unknown outcome at most once.
func (r *run) checkGuarded(key, recipe string) {
	e, err := must(r.session().Configuration(registers)).Get(r.Context(), key)
	if err != nil {
		r.Fatal(err)
	}
	final := parse(e.Value)
	var acknowledged, doubtful int64
	tokens := make(map[int64]recipes.Token)
	for _, m := range r.messages {
		if m.Kind != write || m.Path != key {
			continue
		}
		switch m.End {
		case calling:
			doubtful++
		case failed, refused:
			doubtful--
		case done:
			doubtful--
			acknowledged++
			if before, twice := tokens[m.In]; twice {
				r.Errorf("%s: %d was written with token %d and with %d: a write is lost", recipe, m.In, before, m.Token)
			}
			tokens[m.In] = m.Token
		}
	}
	if final < acknowledged || final > acknowledged+doubtful {
		r.Errorf("%s: %d writes were acknowledged and %d are doubtful, and the register is %d", recipe, acknowledged, doubtful, final)
	}
	var last recipes.Token
	for value := int64(1); value <= final; value++ {
		if token, ok := tokens[value]; ok {
			if token < last {
				r.Errorf("%s: %d was written with token %d after one with %d", recipe, value, token, last)
			}
			last = token
		}
	}
	r.Logf("%s: %d guarded writes were acknowledged, %d have an unknown outcome, none is lost unless reported above", recipe, acknowledged, doubtful)
}

// checkStores checks the stores outside of ZooKeeper. Each acknowledged write adds one to
// the value before it.
func (r *run) checkStores() {
	s := r.stores[fenced]
	if s.value != s.writes || s.writes == 0 {
		r.Errorf("the store that compares tokens acknowledged %d writes and is %d", s.writes, s.value)
	}
	c := r.stores[unfenced]
	wasFrozen := slices.ContainsFunc(r.faults, func(f fault) bool { return f.who == "holder" && f.how == frozen })
	if c.value >= c.writes && wasFrozen {
		r.Errorf("the control: the store that compares no tokens acknowledged %d writes and lost none", c.writes)
	}
	r.Logf("stores: %d writes with tokens, none lost; %d without, %d lost (the control)", s.writes, c.writes, c.writes-c.value)
}

func (r *run) checkReaders() {
	reads := 0
	for _, m := range r.messages {
		if m.Kind == torn {
			r.Errorf("a reader saw %d and %d", m.In, m.Out)
		}
		if m.Kind == read && m.Path == "both" && m.End == done {
			reads++
		}
	}
	if reads == 0 {
		r.Error("no client has read under the shared lock")
	}
	r.Logf("/shared: %d reads", reads)
}

// checkTransactions compares decisions with votes and with each other.
func (r *run) checkTransactions() {
	votes := make(map[string][]int64)
	decisions := make(map[string][]int64)
	var commits, aborts, ended int
	begun := make(map[string]bool)
	for _, m := range r.messages {
		switch {
		case m.Kind == begin && m.End == done:
			begun[m.Path] = true
		case m.Kind == vote && m.End == done: // after an unknown outcome, a client may vote differently in its next session
			votes[m.Path] = append(votes[m.Path], m.In)
		case m.Kind == decision:
			decisions[m.Path] = append(decisions[m.Path], m.Out)
		}
	}
	s := r.session()
	for name := range begun {
		tx := must(s.Transaction(name, recipes.TransactionConfig{}))
		status, err := tx.Status(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		d, err := tx.Abort(r.Context(), "the end of the test")
		if err != nil {
			r.Fatal(err)
		}
		final := int64(0)
		switch {
		case status.Decision == nil:
			ended++
		case d.Commit:
			commits++
		default:
			aborts++
		}
		if d.Commit {
			final = 1
		}
		for _, other := range decisions[name] {
			if other != final {
				r.Errorf("%s: a party got decision %d, but the decision is %d (1 is commit)", name, other, final)
			}
		}
		if d.Commit && slices.Contains(votes[name], 0) {
			r.Errorf("%s: committed against a vote: %d", name, votes[name])
		}
		for _, site := range status.Sites {
			if d.Commit && site.Vote != recipes.VoteCommit {
				r.Errorf("%s: committed without the vote of %s", name, site.Name)
			}
		}
	}
	if commits == 0 {
		r.Error("no transaction was committed")
	}
	r.Logf("transactions: %d committed, %d aborted, %d undecided until the end, all parties agree", commits, aborts, ended)
}

func (r *run) checkHistories() {
	histories := operations(r.messages)
	kinds := make(map[string]int)
	for name := range histories {
		kinds[path.Dir(name)]++
	}
	sum := judge(r, histories)
	r.Logf("histories of counters, keys and queues: %+v, of kinds %v", sum, kinds)
	if len(kinds) != 3 {
		r.Errorf("histories of %v only", kinds)
	}
	r.checkMonotone()
}

// checkMonotone checks that a session never reads a value older than one that it has read or
// written. A key that does not exist has no revision that could be compared.
func (r *run) checkMonotone() {
	type reader struct {
		session int64
		path    string
	}
	known := make(map[reader]int64)
	for _, m := range r.messages {
		value := m.Rev
		if m.Kind == add || m.Kind == read {
			value = m.Out
		}
		missing := (m.Kind == get || m.Kind == del) && value == 0
		if !checked[m.Kind] || m.Kind == put || m.Kind == take || m.End != done || m.Path == "both" || missing {
			continue
		}
		who := reader{m.Session, m.Path}
		if value < known[who] {
			r.Errorf("session %#x found %d at %s after %d", m.Session, value, m.Path, known[who])
		}
		known[who] = value
	}
}

// period is the time during which a client considered a grant held.
type period struct {
	token      recipes.Token
	from, till int64
	client     int
	lost       bool // Done closed before the client began to release
}

// periods returns one period for each grant of a recipe that has ended.
func (r *run) periods(recipe string) (all []period) {
	open := make(map[recipes.Token]period)
	for _, m := range r.messages {
		if m.Path != recipe {
			continue
		}
		switch m.Kind {
		case granted:
			open[m.Token] = period{token: m.Token, from: m.At, client: m.Client}
		case released, closed:
			if b, ok := open[m.Token]; ok {
				b.till, b.lost = m.At, m.Kind == closed
				all = append(all, b)
				delete(open, m.Token)
			}
		}
	}
	return all
}

// reportSurvival logs how long a hold lasted after the beginning of the fault that ended it,
// by the age of the hold at that time. A hold younger than half the timeout may rest on an
// older proof. It leaves out faults of the process itself.
func (r *run) reportSurvival() {
	const width = sessionTimeout / 4
	lasted := make([][]time.Duration, 5)
	for _, recipe := range []string{"/lock", "/election"} {
		for _, b := range r.periods(recipe) {
			for _, f := range r.faults {
				if f.how == killed || f.how == frozen || !b.lost || b.from > f.start || b.till < f.start || b.till > f.end {
					continue
				}
				age := min(int(time.Duration(f.start-b.from)/width), len(lasted)-1)
				lasted[age] = append(lasted[age], time.Duration(b.till-f.start))
			}
		}
	}
	table := "holds that a fault ended, in shares of the session timeout\n| age | holds | Done after, least | median | most |\n|---|---|---|---|---|\n"
	share := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()/sessionTimeout.Seconds()) }
	for i, d := range lasted {
		if len(d) > 0 {
			table += fmt.Sprintf("| from %.2f | %d | %s | %s | %s |\n", float64(i)/4, len(d), share(slices.Min(d)), share(median(d)), share(slices.Max(d)))
		}
	}
	r.Log(table)
}

// reportOverlaps logs how many times two clients considered the same lock held at the same
// time. It leaves out frozen processes, for which the contract allows overlaps. An overlap
// is not an error: a busy machine may wake a client too late.
func (r *run) reportOverlaps(recipe string) (overlaps int) {
	all := r.periods(recipe)
	worst := time.Duration(0)
	slices.SortFunc(all, func(a, b period) int { return int(a.token - b.token) })
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		wasFrozen := slices.ContainsFunc(r.faults, func(f fault) bool {
			return f.who == "holder" && f.how == frozen && f.client == a.client && a.till > f.start && a.from < f.end
		})
		if over := time.Duration(a.till - b.from); over > 0 && !wasFrozen {
			overlaps, worst = overlaps+1, max(worst, over)
		}
	}
	r.Logf("%s: %d grants; two clients considered it held %d times, for %v at most, without frozen ones", recipe, len(all), overlaps, worst)
	return overlaps
}

// reportAvailability logs for how long the lock was not held after each kind of fault: the
// longest time between two successful guarded writes under it.
func (r *run) reportAvailability() {
	var proofs []int64
	for _, m := range r.messages {
		if proof(m) {
			proofs = append(proofs, m.At)
		}
	}
	slices.Sort(proofs)
	// longest returns the longest gap that overlaps the time between from and to, or lies
	// within it.
	longest := func(from, to int64, within bool) (gap time.Duration) {
		for i := 1; i < len(proofs); i++ {
			if proofs[i] > from && proofs[i-1] < to && (!within || proofs[i-1] >= from && proofs[i] <= to) {
				gap = max(gap, time.Duration(proofs[i]-proofs[i-1]))
			}
		}
		return gap
	}
	gaps := make(map[string][]time.Duration)
	elections := make(map[string][]time.Duration)
	var order []string
	for _, f := range append(kinds(), r.faults...) {
		if !slices.Contains(order, f.String()) {
			order = append(order, f.String())
		}
	}
	const none = "no fault"
	order = append(order, none)
	for i, f := range r.faults {
		gaps[f.String()] = append(gaps[f.String()], longest(f.start, f.end, false))
		if f.elected > 0 {
			elections[f.String()] = append(elections[f.String()], f.elected)
		}
		quietUntil := f.settled + int64(quiet)
		if i+1 < len(r.faults) {
			quietUntil = r.faults[i+1].start
		}
		gaps[none] = append(gaps[none], longest(f.settled, quietUntil, true))
		r.Logf("%s for %s s: not held for %s s", f, seconds(time.Duration(f.end-f.start)), seconds(longest(f.start, f.end, false)))
	}
	table := "availability, session timeout " + sessionTimeout.String() +
		"\n| fault | times | not held, median | worst | another leader after |\n|---|---|---|---|---|\n"
	for _, name := range order {
		if len(gaps[name]) == 0 {
			continue
		}
		elected := "-"
		if e := elections[name]; len(e) > 0 {
			elected = seconds(median(e)) + " s (" + strconv.Itoa(len(e)) + " times)"
		}
		table += fmt.Sprintf("| %s | %d | %s s | %s s | %s |\n", name, len(gaps[name]), seconds(median(gaps[name])), seconds(slices.Max(gaps[name])), elected)
	}
	r.Log(table)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }
