package interop_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

const peersOfAMatch = 4

// play has two of each side contend, and kills one of the sides in turn.
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
			case <-time.After(10 * time.Second): // clean-up: it is stuck, which is not what is tested here
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
			m.t.Fatalf("%s has ended; told %q", p.side.name, m.broken)
		case <-time.After(watchdog.Patience):
			m.t.Fatalf("%s is not ready", p.side.name)
		}
	}
	start, look := time.Now(), time.NewTicker(askEvery)
	over := -1 // answers of the server when the time was over
	defer look.Stop()
	kill := time.NewTicker(min(killEvery, lasts*2/5))
	defer kill.Stop()
	for {
		select {
		case <-look.C:
			for i, p := range peers { // as after a session that was lost
				select {
				case <-p.exited:
					peers[i] = m.start(p.side)
				default:
				}
			}
			if m.left() {
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

// left notes it if all are left waiting. A match in which all take part in each turn ends
// with the first session that is lost.
func (m *match) left() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pair.meet && m.lost > 0 {
		return true
	}
	why := m.stuck(m.pair.stops || m.pair.meet)
	if why != "" {
		m.broken = append(m.broken, why)
	}
	return why != ""
}

// tooLittle notes it if one side has had its turns alone, for so many answers more than
// the pair had time.
func (m *match) tooLittle(answers int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answers <= mostMore {
		return false
	}
	m.broken = append(m.broken, fmt.Sprintf("the turns are %v, of which %d followed one of the other side, for as long as it took the server to answer %d times more, %v apart", m.turns, m.handovers, answers, askEvery))
	return true
}

// kill kills one of the peers, of the sides in turn, and returns which. It is one that
// holds, if one comes to hold within a session timeout. Where there are readers it is a
// writer and a reader in turn, or either of them where all wait now and then.
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
		i = (i + 2) % len(peers) // the other of this side
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
	m.killed, m.killTold = time.Now(), m.answers
	m.kills++
	if was != "" {
		m.killedAs[p.side.name+" "+was]++
	}
	m.mu.Unlock()
	// What it has left in the witness. Its znode stands for a session timeout more, so
	// nobody else has come in.
	if m.writes(pid) {
		_ = os.Remove(m.witness.file("writer"))
	}
	_ = os.Remove(m.witness.file("reader-" + pid))
	_ = os.Remove(m.witness.file("slot-" + pid))
	_ = os.Remove(m.witness.file("taken-" + pid))
	if text, err := os.ReadFile(m.witness.file("counter")); err == nil && len(text) == 0 { // killed while it wrote
		m.mu.Lock()
		last := slices.Max(append(slices.Collect(maps.Keys(m.seen)), 0)) + 1
		m.mu.Unlock()
		if err := os.WriteFile(m.witness.file("counter"), []byte(strconv.Itoa(last)), 0o600); err != nil {
			m.t.Error(err)
		}
	}
	return i
}

// is what a process is to the witness.
func (m *match) is(pid string) string {
	switch {
	case m.pair.rw && m.writes(pid):
		return "writer"
	case m.pair.meet && (m.exists("taken-"+pid) || os.Rename(m.witness.file("rests-"+pid), m.witness.file("taken-"+pid)) == nil):
		return "member" // which does not enter any more
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
