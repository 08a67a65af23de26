package recipes

// Strategy is how a contender waits for its turn. It decides what waiting costs,
// never which contender is next. Contenders of every strategy can stand in one line.
//
// With every strategy a grant costs one or two syncs more (round trips to the leader of the
// ensemble, without a transaction) if the session has been idle for long. A session that
// has written or held something of late sends none.
type Strategy string

const (
	// Herd: every waiter watches the first in line. Each departure wakes them all,
	// and each then lists the line again. One handoff with n waiting costs n-1 watch
	// events and n-1 listings of up to n names. The recipe text calls this trivial
	// and warns of it. It is here to be measured against.
	// Source: ZooKeeper Recipes, "Leader Election", the first form.
	Herd Strategy = "herd"

	// Predecessor: every waiter watches the nearest contender ahead that can block
	// it, so that a departure wakes exactly one. One handoff costs one watch event
	// and two reads, one of which lists the n names in line.
	// Source: ZooKeeper Recipes, "Locks" and "Leader Election". Two of the texts say
	// "the smallest sequence number j such that j < i". Then all would watch the
	// first in line: the herd that the paragraph above it wants to avoid. It is the
	// largest j < i, as the Apache page has it.
	Predecessor Strategy = "predecessor"

	// Handoff: every waiter watches the contender with the number before its own,
	// whose name it knows without listing the line. A holder releases in a way that
	// tells its successor that it was a release, and the successor lists nothing. One
	// handoff costs one write, one watch event, and one small read when the waiter joins,
	// however many wait. After anything else ahead (a crash, a contender that gives up, a
	// contender of another kind or library) the waiter lists the line, as with
	// Predecessor.
	//
	// It is for locks and elections, and for semaphores with one permit. The other
	// recipes use Predecessor in its place. A reader is blocked by the nearest writer
	// and not by the nearest number. Of two permits, one release does not say whose
	// turn it is. And others write to a revocable contender's znode.
	//
	// Contenders are named by marker and number alone (lock-0000000012), and only
	// their own session may write to them. No source text has this.
	Handoff Strategy = "handoff"

	// DefaultStrategy is what the empty Strategy means.
	DefaultStrategy = Handoff
)

// Strategies returns all strategies, in the order in which they are documented.
func Strategies() []Strategy { return []Strategy{Herd, Predecessor, Handoff} }

// Normalize returns the strategy, or [DefaultStrategy] for "". The error matches
// [ErrInvalid] and names the strategies that exist.
func (s Strategy) Normalize() (Strategy, error) {
	return choose("strategy", s, DefaultStrategy, Strategies())
}
