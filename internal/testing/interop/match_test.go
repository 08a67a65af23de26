package interop_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// match is a pair that contends for one path.
type match struct {
	t            *testing.T
	pair         pair
	server, path string
	witness      witness

	mu        sync.Mutex
	turns     map[string]int // by side
	seen      map[int]string // the side that took the turn with a number
	holder    *peer          // the last to take a turn
	handovers int            // turns that followed one of the other side
	most      int            // the most turns of one peer between two turns of another, if none was killed; the other may have joined late
	since     map[*peer]map[*peer]int
	put       map[string]int // elements of a queue, and how often
	taken     map[string]int
	reads     int
	listed    int // how many times theirs listed ours
	timeouts  int
	lost      int // sessions that were lost, on a busy machine
	kills     int
	killedAs  map[string]int // by the role that the witness showed
	broken    []string
	stopped   bool // messages of peers no longer count, except put and took

	order
	pauses
}

// receive handles one line of a peer's output.
func (m *match) receive(p *peer, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	words := strings.Fields(line)
	if len(words) == 0 || m.stopped && words[0] != "put" && words[0] != "took" {
		return
	}
	numbers := make([]int64, len(words))
	for i, w := range words {
		numbers[i], _ = strconv.ParseInt(w, 10, 64)
	}
	switch what := words[0]; {
	case what == "ready":
		close(p.ready)
	case what == "timeout":
		m.timeouts++
	case what == "lost":
		m.lost++
		m.stopped = m.pair.meet // their later messages would include a dead member
	case what == "listed":
		m.listed++
	case what == "turn" && len(words) >= 2:
		n := int(numbers[1])
		if who, again := m.seen[n]; again || n == 0 {
			m.broken = append(m.broken, fmt.Sprintf("%s and %s have both counted to %s", who, p.side.name, words[1]))
		}
		m.seen[n] = p.side.name
		if len(words) == 3 {
			m.writers = append(m.writers, place{n, numbers[2]})
		}
		m.took(p)
	case what == "read" && len(words) == 3:
		m.reads++
		m.readers = append(m.readers, place{int(numbers[1]), numbers[2]})
		m.took(p)
	case what == "held":
		if len(words) == 3 {
			m.leases = append(m.leases, lease{numbers[1], numbers[2]})
		}
		m.took(p)
	case what == "put" && len(words) == 2:
		m.put[words[1]]++
	case what == "took" && len(words) == 2:
		m.taken[words[1]]++
		m.took(p)
	case what == "passed" && len(words) == 2:
		if numbers[1] < 2 || m.pair.meet && numbers[1] != peersOfAMatch {
			m.broken = append(m.broken, fmt.Sprintf("%s has passed when %d had come", p.side.name, numbers[1]))
		}
		m.took(p)
	case what == "left" && len(words) == 2:
		if numbers[1] > 0 {
			m.broken = append(m.broken, fmt.Sprintf("%s has left when %d were inside", p.side.name, numbers[1]))
		}
	default:
		m.broken = append(m.broken, line)
	}
}

func (m *match) answered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers
}

func (m *match) took(p *peer) {
	if m.holder != nil && m.holder.side.name != p.side.name {
		m.handovers++
	}
	if m.pauses.turn(time.Now()) {
		m.since = nil
	}
	m.turns[p.side.name]++
	if m.since == nil {
		m.since = map[*peer]map[*peer]int{}
	}
	for other, n := range m.since {
		if other != p {
			n[p]++
		}
	}
	for _, n := range m.since[p] {
		m.most = max(m.most, n)
	}
	m.since[p] = map[*peer]int{}
	m.holder = p
}

// enough reports whether the match can end: each side has had a turn after the other, one
// turn followed the last kill, or a rule was broken. A busy machine may need longer for
// that than the length of the match.
func (m *match) enough() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.broken) > 0 || len(m.turns) == 2 && m.handovers >= 2 && m.last.After(m.killed) && (m.listed > 0 || !m.pair.lists)
}

func (m *match) judge(lasts time.Duration, long bool) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = append(m.broken, m.order.broken()...)
	if !m.pair.free && long { // a short run kills only once
		for _, side := range []string{m.pair.library, "ours"} {
			as := []string{"holder"}
			switch {
			case m.pair.stops:
				as = nil
				if m.killedAs[side+" reader"]+m.killedAs[side+" writer"] == 0 {
					as = []string{"reader or writer"}
				}
			case m.pair.rw:
				as = []string{"reader", "writer"}
			case m.pair.meet:
				as = []string{"member"}
			}
			for _, as := range as {
				if m.kills >= 8 && m.killedAs[side+" "+as] == 0 {
					m.broken = append(m.broken, fmt.Sprintf("no %s of %s was killed in %d kills: %v", as, side, m.kills, m.killedAs))
				}
			}
		}
	}
	if m.pair.theirs == "semaphore" {
		m.t.Logf("interop: a waiter saw at most %d permits of another contender before its own (%d contenders)", m.order.overtaken(), len(m.order.waiting))
	}
	killed := "-"
	if !m.pair.free { // otherwise no process is a holder
		by := map[string]int{}
		for as, n := range m.killedAs {
			side, _, _ := strings.Cut(as, " ")
			by[side] += n
		}
		killed = fmt.Sprintf("%d and %d", by[m.pair.library], by["ours"])
	}
	// A row of the table in docs/interop.md.
	m.t.Logf("interop: | %s | %d | %d | %d | %v | %v | %s | %d |", m.pair.named, m.turns[m.pair.library], m.turns["ours"], m.handovers,
		m.longest.Round(time.Millisecond), m.recovered.Round(time.Millisecond), killed, len(m.broken))
	m.t.Logf("interop: %d turns of readers in %v, %d kills %v", m.reads, lasts, m.kills, m.killedAs)
	m.t.Logf("interop: at most %d turns of another between two of one, %d timeouts, %d sessions lost, ours listed %d times", m.most, m.timeouts, m.lost, m.listed)
	// A process that is paused for its session timeout still acts as holder beside the next one.
	// A busy machine pauses processes. The audit still shows what ZooKeeper granted.
	paused := m.audited() > m.kills
	for _, b := range m.broken {
		if paused && strings.HasSuffix(b, "holds beside a holder") {
			m.t.Logf("not counted, because more sessions expired than peers were killed: %s", b)
			continue
		}
		m.t.Error(b)
	}
}
