package recipes

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Transaction is a two-phase commit. A coordinator proposes something to a group of
// sites, and each site votes. If all vote for it, all commit; otherwise all abort.
// It is a name and holds no state. Any number of goroutines, in any process, may use
// it for either part.
//
// Source: ZooKeeper Recipes, "Two-phased Commit". The path is the text's /app/Tx. Its
// data are the payload ("even propagating the transaction can be done through
// ZooKeeper by writing it in the transaction node"). A site named i votes by writing
// "commit" or "abort" into the child s_i. Divergences:
//
//   - The decision is a node, decision, created in one transaction with checks of
//     the votes that it stands on. In the text each site (or the coordinator)
//     decides for itself when it has seen the votes. Here nobody acts on a decision
//     that is not in ZooKeeper, only one can exist, and a site that comes back finds
//     it.
//   - The child protocol records the variant and the group of sites, so that
//     strangers are refused.
//   - The child coordinator is ephemeral. When a coordinator dies or gives up, the
//     first waiting site that notices replaces it.
//   - A site says when it has acted on the decision. The last one to say so deletes
//     the transaction: see Site.Done.
//
// As in every two-phase commit, a site that does not vote blocks the others, until
// it does, or dies ([OwnNodes]), or somebody calls Abort.
type Transaction interface {
	// Path is the path the transaction was made with.
	Path() string

	// Begin creates the transaction with its payload for a group of sites, in one
	// ZooKeeper transaction. Where the variant has a coordinator, Begin's session
	// becomes it, and then calls Coordinate. Site names are elements of paths; their
	// nodes are named s_<name>.
	//
	// If the path already has a transaction, the error matches ErrNodeExists. A lost
	// reply does not cause that. If ctx ends, or the session is lost, after the
	// request was sent, the error matches ErrUnknownOutcome too.
	Begin(ctx context.Context, payload []byte, sites ...string) error

	// Coordinate waits until the votes allow a decision, makes it, and returns it. The
	// decision is "abort" as soon as one site votes for that. If a decision exists
	// already, Coordinate returns it.
	//
	// Any session may call it, not only the one that began. It finishes what a dead
	// coordinator has left, and several at a time do no harm. If it fails in the
	// coordinator's session, a waiting site becomes coordinator. It may be called
	// again all the same.
	Coordinate(ctx context.Context) (Decision, error)

	// Abort decides to abort, whatever the votes, unless a decision exists. It
	// returns the decision that holds. The reason is for people.
	Abort(ctx context.Context, reason string) (Decision, error)

	// Join takes part as a site and returns it, with the payload. With [OwnNodes] it
	// creates the site's node, which lives as long as this session. A site that is
	// not of the group is refused with ErrUnknownSite.
	//
	// Join may be called again, also after the loss of a session. But with OwnNodes a
	// site whose session has ended is dead, and the error matches ErrNotHeld. If a
	// decision exists, Join succeeds all the same, and Wait returns the decision.
	Join(ctx context.Context, site string) (Site, error)

	// Status returns the state of the transaction. It may be outdated on arrival.
	Status(ctx context.Context) (TransactionStatus, error)

	// Forget deletes a transaction whose sites are all Done. If they are not, the
	// error matches ErrUndecided and names the sites that are missing. If no
	// transaction exists, that is not an error. Forget is needed only after a
	// failure: see Site.Done.
	Forget(ctx context.Context) error
}

// Site is a participant of a transaction.
//
// The methods of a transaction and its sites return an error that matches
// ErrNoTransaction when nothing has begun at the path, or it was deleted. If ctx
// ends, or the session is lost, while the outcome of a change is unknown, the error
// matches ErrUnknownOutcome. All methods but Begin may then be called again.
type Site interface {
	// Name is the site's name.
	Name() string

	// Payload is what was given to Begin.
	Payload() []byte

	// Vote votes, once. The same vote again is not an error, so a call whose outcome
	// is unknown may be repeated. Another vote is refused with ErrVoted. After
	// VoteCommit the site must be able to commit, and must not act before Wait has
	// told it to. With [OwnNodes] a site that is dead cannot vote: ErrNotHeld. No site
	// can whose znode another client has deleted: ErrRemoved. A vote that comes after
	// the decision is written and changes nothing.
	Vote(ctx context.Context, vote Vote) error

	// Wait waits for the decision. It makes the decision itself where the variant has
	// it so, and where the coordinator has died. A lost connection does not end the
	// wait. A site that has not voted may call it.
	Wait(ctx context.Context) (Decision, error)

	// Done says that the site has acted on the decision, and will not ask for it
	// again. Before a decision it is refused with ErrUndecided. It may be called
	// again.
	//
	// The last site's Done deletes the transaction. So the decision is kept exactly
	// until every site has acted, however long one is away. Forget deletes what
	// remains if the last site dies halfway. If another program keeps something below
	// one of the transaction's children, the last Done, and Forget, match ErrNotEmpty.
	// The site is done all the same.
	Done(ctx context.Context) error
}

// Variant is how the sites and the coordinator of a transaction watch each other. All
// variants decide the same. They differ in what they cost and in what they notice.
// The package comment of recipes/zookeeper has the costs.
type Variant string

const (
	// AllWatch is the text's first form: every site watches every site's node, and
	// decides. Messages grow with the square of the number of sites. It needs no
	// coordinator after Begin.
	AllWatch Variant = "all-watch"

	// CoordinatorOnly is the answer to the first drawback that the text names: only
	// the coordinator watches the sites, which wait for its decision. Each decision
	// takes one step more.
	CoordinatorOnly Variant = "coordinator-only"

	// OwnNodes is the answer to the second: each site creates its node when it joins,
	// ephemeral, so that its death is seen. If a site dies before the decision, voted
	// or not, the decision is to abort. After the decision nothing changes it. Only
	// the coordinator watches, as in CoordinatorOnly.
	OwnNodes Variant = "own-nodes"

	// DefaultVariant is what the empty Variant means.
	DefaultVariant = CoordinatorOnly
)

// Variants returns all variants, in the order in which they are documented.
func Variants() []Variant { return []Variant{AllWatch, CoordinatorOnly, OwnNodes} }

// Normalize returns the variant, or [DefaultVariant] for "". The error matches
// [ErrInvalid] and names the variants that exist.
func (v Variant) Normalize() (Variant, error) {
	return choose("variant", v, DefaultVariant, Variants())
}

// TransactionConfig says how to begin. The zero value is good. A site that joins
// finds the variant in the transaction.
type TransactionConfig struct {
	// Variant is how sites and coordinator watch each other; "" is DefaultVariant.
	Variant Variant
}

// Vote is what a site votes, and what its node holds.
type Vote string

const (
	// NotVoted is the vote of a site that has not voted.
	NotVoted Vote = ""
	// VoteCommit promises that the site can commit.
	VoteCommit Vote = "commit"
	// VoteAbort makes the decision "abort".
	VoteAbort Vote = "abort"
)

// Decision is the outcome of a transaction. It never changes.
type Decision struct {
	// Commit is whether to commit. Otherwise all abort.
	Commit bool
	// Reason says, for people, why to abort: which site voted so, or died.
	Reason string
}

// TransactionStatus is the state of a transaction at one moment.
type TransactionStatus struct {
	Variant Variant
	Payload []byte
	// Sites are in the order in which they were given to Begin.
	Sites []SiteStatus
	// Decision is nil before the decision.
	Decision *Decision
	// Coordinated reports whether a session is coordinator: since Begin, or by
	// waiting, until the session ends or it gives up.
	Coordinated bool
}

// SiteStatus is the state of a site at one moment.
type SiteStatus struct {
	Name string
	Vote Vote
	// Joined is known only with OwnNodes.
	Joined bool
	// Dead: the site has joined, and its session has ended.
	Dead bool
	Done bool
}

// ValidateSites reports what is wrong with a group of sites, as an ErrInvalid.
func ValidateSites(sites []string) error {
	if len(sites) == 0 {
		return fmt.Errorf("%w: a transaction needs a site", ErrInvalid)
	}
	for i, s := range sites {
		if err := ValidatePath("/s_" + s); err != nil || s == "" || strings.Contains(s, "/") {
			return fmt.Errorf("%w: site %q is not an element of a path", ErrInvalid, s)
		}
		if slices.Contains(sites[:i], s) {
			return fmt.Errorf("%w: site %q twice", ErrInvalid, s)
		}
	}
	return nil
}

// Validate reports what is wrong with a vote, as an ErrInvalid.
func (v Vote) Validate() error {
	if v != VoteCommit && v != VoteAbort {
		return fmt.Errorf("%w: vote %q; %q or %q", ErrInvalid, string(v), string(VoteCommit), string(VoteAbort))
	}
	return nil
}
