package interop_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

const peersOfAMatch = 4

// play lets two peers of each side contend, and kills a peer of each side in turn.
func (m *match) play(lasts time.Duration, sides ...side) {
	m.t.Helper()
	peers := []*peer{m.start(sides[0]), m.start(sides[1]), m.start(sides[0]), m.start(sides[1])}
	stop, watched := make(chan struct{}), make(chan struct{})
	defer func() {
		m.mu.Lock()
		m.stopped = true
		m.mu.Unlock()
		close(stop)
		for _, p := range peers {
			_ = p.stdin.Close()
		}
		for _, p := range peers {
			select {
			case <-p.exited:
			case <-time.After(10 * time.Second): // clean-up: the test is not about how a peer ends
				_ = p.cmd.Process.Kill()
				<-p.exited
			}
		}
		<-watched
	}()
	go func() {
		defer close(watched)
		m.watch(stop)
	}()
	for _, p := range peers {
		select {
		case <-p.ready:
		case <-p.exited:
			m.t.Fatalf("%s has ended: %q", p.side.name, m.broken)
		case <-time.After(watchdog.Patience):
			m.t.Fatalf("%s is not ready", p.side.name)
		}
	}
	start, check := time.Now(), time.NewTicker(askEvery)
	over := -1 // answers of the server when the match time had passed
	defer check.Stop()
	kill := time.NewTicker(min(killEvery, lasts*2/5))
	defer kill.Stop()
	for {
		select {
		case <-check.C:
			for i, p := range peers { // a peer may have lost its session
				select {
				case <-p.exited:
					peers[i] = m.start(p.side)
				default:
				}
			}
			if m.left(slices.ContainsFunc(peers, (*peer).starts)) {
				return
			}
			if time.Since(start) < lasts {
				continue
			}
			if over < 0 {
				over = m.answered()
			}
			if m.enough() || m.tooLittle(m.answered()-over) {
				return
			}
		case <-kill.C:
			if time.Since(start) >= lasts {
				continue
			}
			i := m.kill(peers)
			peers[i] = m.start(peers[i].side)
		}
	}
}

// left reports whether the match must end early. One reason is that all peers wait forever,
// which it records as broken. The other reason is a lost session, if each turn needs all peers.
// starts reports that a peer is not ready yet.
func (m *match) left(starts bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pair.meet && m.lost > 0 {
		return true
	}
	if m.pair.meet && starts {
		m.killAnswers = m.answers // a turn waits for the new peer, however late it is ready
	}
	why := m.stuck(m.pair.stops || m.pair.meet)
	if why != "" {
		m.broken = append(m.broken, why)
	}
	return why != ""
}

// tooLittle reports whether the match has continued for too many answers beyond its length
// without enough turns. If so, it records that as broken.
func (m *match) tooLittle(answers int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answers <= mostMore {
		return false
	}
	m.broken = append(m.broken, fmt.Sprintf("the turns are %v, of which %d followed one of the other side, after the server answered %d more requests, sent %v apart", m.turns, m.handovers, answers, askEvery))
	return true
}

// kill kills a peer, of each side in turn, and returns its index. It kills a holder, if one
// of that side holds within a session timeout. If the pair has readers, it kills a writer
// and a reader in turn, or either of them if all contenders can wait for each other.
func (m *match) kill(peers []*peer) int {
	want, patience := []string{"holder"}, sessionTimeout
	switch {
	case m.pair.free:
		want = nil
	case m.pair.stops:
		want, patience = []string{"writer", "reader"}, 10*sessionTimeout
	case m.pair.rw:
		want = [][]string{{"writer"}, {"reader"}}[m.kills/2%2]
	}
	if m.pair.meet {
		want, patience = []string{"member"}, 10*sessionTimeout
	}
	i := m.kills % len(peers)
	for start := time.Now(); want != nil && time.Since(start) < patience && !slices.Contains(want, m.is(peers[i].pid())); time.Sleep(100 * time.Microsecond) {
		i = (i + 2) % len(peers) // the other peer of this side
	}
	p, pid := peers[i], peers[i].pid()
	if m.pair.meet && m.is(pid) == "" {
		m.mu.Lock()
		m.broken = append(m.broken, fmt.Sprintf("no member of %s has come to the end of a round in %v", p.side.name, patience))
		m.mu.Unlock()
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	was := m.is(pid)
	m.mu.Lock()
	m.killed, m.killAnswers = time.Now(), m.answers
	m.kills++
	if was != "" {
		m.killedAs[p.side.name+" "+was]++
	}
	m.mu.Unlock()
	// Remove the files that it left in the witness. Its znode exists for another session
	// timeout, so no other peer has been granted.
	if m.writes(pid) {
		m.repairCounter()
		_ = os.Remove(m.witness.file("writer"))
	}
	_ = os.Remove(m.witness.file("reader-" + pid))
	_ = os.Remove(m.witness.file("slot-" + pid))
	_ = os.Remove(m.witness.file("taken-" + pid))
	return i
}

// repairCounter writes the counter that a writer was killed in the middle of writing. If another
// peer than the killed one writes, the file may be empty for a moment, and must be left alone.
func (m *match) repairCounter() {
	if text, err := os.ReadFile(m.witness.file("counter")); err != nil || len(text) > 0 {
		return
	}
	m.mu.Lock()
	last := slices.Max(append(slices.Collect(maps.Keys(m.seen)), 0)) + 1
	m.mu.Unlock()
	must.Report(m.t, os.WriteFile(m.witness.file("counter"), []byte(strconv.Itoa(last)), 0o600))
}

// is returns the role of a process, as its files in the witness show.
func (m *match) is(pid string) string {
	switch {
	case m.pair.rw && m.writes(pid):
		return "writer"
	case m.pair.meet && (m.exists("taken-"+pid) || os.Rename(m.witness.file("rests-"+pid), m.witness.file("taken-"+pid)) == nil):
		return "member" // a member does not enter again
	case m.exists("reader-" + pid):
		return "reader"
	case m.writes(pid), m.exists("slot-" + pid):
		return "holder"
	}
	return ""
}

func (m *match) writes(pid string) bool {
	holder, err := os.ReadFile(m.witness.file("writer"))
	return err == nil && string(holder) == pid
}

func (m *match) exists(name string) bool {
	_, err := os.Stat(m.witness.file(name))
	return err == nil
}
