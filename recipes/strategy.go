package recipes

// Strategy is how a contender waits. It decides what waiting costs, never which contender is
// next. Contenders with different strategies can share a wait queue.
//
// If the session has been idle for long, a grant costs one or two syncs more (round trips to
// the leader of the ensemble, without a transaction). A session that has recently written or
// held something sends none.
type Strategy string

const (
	// Herd: every waiter watches the holder. Each release wakes all waiters, and each of
	// them lists the wait queue. With n waiters that costs n-1 watch events and n-1 listings
	// of up to n names. The recipe text calls this trivial and warns against it. It exists
	// for comparison.
	// Source: ZooKeeper Recipes, "Leader Election", the first form.
	Herd Strategy = "herd"

	// Predecessor: every waiter watches the nearest contender ahead that blocks it, so each
	// release wakes exactly one. It costs one watch event and two reads, one of which lists
	// all n names.
	// Source: ZooKeeper Recipes, "Locks" and "Leader Election". Two of the texts say
	// "the smallest sequence number j such that j < i". Then all would watch the holder,
	// which is the herd that the texts want to avoid. The Apache page has the correct
	// largest j < i.
	Predecessor Strategy = "predecessor"

	// Handoff is the default. Every waiter watches the contender with the next smaller number,
	// whose name it can compute without a listing. A release marks itself as one, so its
	// successor lists nothing. It costs one write, one watch event, and one small read when the waiter joins,
	// however many wait. After anything else ahead (a crash, a contender that gives up, a
	// third-party contender) the waiter lists the wait queue, as with Predecessor.
	//
	// Locks, elections and semaphores with one permit support it. The other recipes use
	// Predecessor instead. The nearest writer blocks a reader, not the next smaller number.
	// With two permits, one release does not determine the next holder. And other sessions
	// write to a revocable contender's znode.
	//
	// Contenders are named by marker and number only (lock-0000000012), and only their own
	// session may write to them. No source text has this strategy.
	Handoff Strategy = "handoff"
)

// Strategies returns all strategies, in the order in which they are documented.
func Strategies() []Strategy { return []Strategy{Herd, Predecessor, Handoff} }

// Normalize returns the strategy, or [Handoff] for "". The error matches
// [ErrInvalid] and names the strategies that exist.
func (s Strategy) Normalize() (Strategy, error) {
	return choose("strategy", s, Handoff, Strategies())
}
