package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// End is a resource that bounds how many contenders a line can have.
type End struct {
	Resource string
	At       int    // the first number of contenders that is too many
	Why      string // a clause with the figures
}

const (
	perConnection = 5000 // a guess at a session and its connection in a server's heap, in bytes
	keepAlive     = 3    // keep-alives that a session sends in its timeout
	perKeepAlive  = 50e3 // a guess at what one takes of a server's processor, in ns
	saturated     = 0.5  // share of a resource from where on it bounds a line
)

// Ends are what bounds a line that grows, in the order in which it meets them.
func (m *Model) Ends(l Limits) []End {
	ends := []End{m.listing(l)}
	if l.Descriptors > 0 {
		ends = append(ends, End{"generator's descriptors", l.Descriptors + 1,
			fmt.Sprintf("a session takes one, and a process may have %d", l.Descriptors)})
	}
	if l.Heap > 0 {
		each := perConnection + perWatch + perZnode + 2*l.NameLength
		ends = append(ends, End{"server's heap", l.Heap/each + 1,
			fmt.Sprintf("of %d MB, of which a contender takes some %d kB (an estimate)", l.Heap/1e6, each/1000)})
	}
	if l.Memory > 0 && m.use.session > 0 {
		ends = append(ends, End{"generator's memory", int(float64(l.Memory)/m.use.session) + 1,
			fmt.Sprintf("a session took %.0f kB of %.1f GB", m.use.session/1000, float64(l.Memory)/1e9)})
	}
	if l.Timeout > 0 {
		most := float64(l.Timeout) / keepAlive / perKeepAlive * float64(max(1, l.Processors))
		ends = append(ends, End{"server's processor", int(saturated*most) + 1,
			fmt.Sprintf("keep-alives alone, %d in a timeout of %v, take half of it (an estimate)", keepAlive, l.Timeout)})
	}
	if at := m.networkEnds(l); at <= Farthest {
		ends = append(ends, End{"network", at, fmt.Sprintf("a handoff's answers take half of its time at %.3g MB/s", l.Network/1e6)})
	}
	slices.SortStableFunc(ends, func(a, b End) int { return cmp.Compare(a.At, b.At) })
	return ends
}

// listing is where a listing of the line no longer fits into an answer.
func (m *Model) listing(l Limits) End {
	e := End{"jute.maxbuffer", (l.MaxBuffer-perResponse)/(perName+l.NameLength) + 1,
		fmt.Sprintf("a listing of more names has over %d bytes, and each handoff needs one", l.MaxBuffer)}
	if m.Strategy == recipes.Handoff {
		e.Why = fmt.Sprintf("a listing of more names has over %d bytes: a handoff needs none, but what falls back to one fails", l.MaxBuffer)
	}
	return e
}

// networkEnds is the number of contenders from which on a handoff's answers take half
// of its time.
func (m *Model) networkEnds(l Limits) int {
	if l.Network == 0 {
		return Farthest + 1
	}
	return 1 + largest(Farthest, func(n int) bool {
		bytes, err := m.At(unit.Bytes, n)
		mean, err2 := m.At(unit.Handoffs, n)
		return err != nil || err2 != nil || bytes.Value/l.Network*mean.Value < saturated
	})
}
