package recipes

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Transaction is a two-phase commit. A coordinator proposes something to a group of sites, and
// each site votes. If all vote to commit, all commit; otherwise all abort. It is only a path,
// without state of its own, and is safe for concurrent use by coordinators and sites.
//
// Source: ZooKeeper Recipes, "Two-phased Commit". The path is the text's /app/Tx. Its
// data is the payload ("even propagating the transaction can be done through
// ZooKeeper by writing it in the transaction node"). A site named i votes by writing
// "commit" or "abort" into the child s_i. Divergences:
//
//   - The decision is a node, decision, created in one transaction with checks of the votes
//     that it depends on. In the text each site (or the coordinator) decides for itself when
//     it has read the votes. Here no party acts on a decision that is not in ZooKeeper, only
//     one decision can exist, and a site that returns finds it.
//   - The child protocol records the variant and the group of sites. Other sites are refused.
//   - The child coordinator is ephemeral. When a coordinator dies or gives up, the first
//     waiting site that notices replaces it.
//   - A site reports when it has acted on the decision. The last report deletes the
//     transaction: see Site.Done.
//
// As in every two-phase commit, a site that does not vote blocks the others until it votes or
// dies ([OwnNodes]), or until a client calls Abort.
type Transaction interface {
	// Path is the path of the transaction.
	Path() string

	// Begin creates the transaction with its payload for a group of sites, in one ZooKeeper
	// transaction. If the variant has a coordinator, Begin's session becomes the
	// coordinator, and the caller then calls Coordinate. Site names are elements of paths;
	// their nodes are named s_<name>.
	//
	// If the path already has a transaction, the error matches ErrNodeExists. A lost reply
	// does not cause that. If ctx ends, or the session is lost, after the request was sent,
	// the error also matches ErrUnknownOutcome.
	Begin(ctx context.Context, payload []byte, sites ...string) error

	// Coordinate waits until the votes allow a decision, makes it, and returns it. One vote
	// to abort is enough for the decision "abort". If a decision exists, Coordinate returns
	// it.
	//
	// Any session may call it, not only the one of Begin. It completes the work of a dead
	// coordinator, and several calls at a time are safe. If it fails in the coordinator's
	// session, a waiting site becomes coordinator. Then it may still be called again.
	Coordinate(ctx context.Context) (Decision, error)

	// Abort decides to abort, whatever the votes, unless a decision exists. It returns the
	// decision. The reason is for people.
	Abort(ctx context.Context, reason string) (Decision, error)

	// Join joins as a site and returns it, with the payload. With [OwnNodes] it creates the
	// site's node, which exists until this session ends. A site that is not in the group is
	// refused with ErrUnknownSite.
	//
	// Join may be called again, even after the loss of a session. But with OwnNodes a site
	// whose session has ended is dead, and the error matches ErrNotHeld. If a decision
	// exists, Join still succeeds, and Wait returns the decision.
	Join(ctx context.Context, site string) (Site, error)

	// Status returns the state of the transaction. It may be outdated when it arrives.
	Status(ctx context.Context) (TransactionStatus, error)

	// Forget deletes a transaction whose sites are all Done. Otherwise the error matches
	// ErrUndecided and names the missing sites. If there is no transaction, it returns nil.
	// Forget is needed only after a failure: see Site.Done.
	Forget(ctx context.Context) error
}

// Site is a participant of a transaction.
//
// If the path has no transaction, because none has begun or it was deleted, the methods of a
// transaction and its sites return an error that matches ErrNoTransaction. If ctx ends, or the
// session is lost, while the outcome of a change is unknown, the error matches
// ErrUnknownOutcome. All methods except Begin may then be called again.
type Site interface {
	// Name is the site's name.
	Name() string

	// Payload is the payload of Begin.
	Payload() []byte

	// Vote votes, once. To repeat the same vote is not an error, so a call whose outcome is
	// unknown can be repeated. Another vote is refused with ErrVoted. After VoteCommit the
	// site must be able to commit, and must not act before Wait returns the decision. With
	// [OwnNodes] a dead site cannot vote: ErrNotHeld. If another client has deleted the
	// site's znode, the error matches ErrRemoved. A vote after the decision is stored and
	// changes nothing.
	Vote(ctx context.Context, vote Vote) error

	// Wait waits for the decision. With [AllWatch], and if the coordinator has died, it makes
	// the decision itself. A lost connection does not end the wait. A site that has not
	// voted may call it.
	Wait(ctx context.Context) (Decision, error)

	// Done reports that the site has acted on the decision, and does not need it any more.
	// Before a decision it is refused with ErrUndecided. It may be called again.
	//
	// The last site's Done deletes the transaction. So the decision is kept until every site
	// has acted, however long a site is away. If the last site dies in between, Forget deletes
	// the rest. If a child of the transaction has children of another program, the last
	// Done, and Forget, return an error that matches ErrNotEmpty. The site is still done.
	Done(ctx context.Context) error
}

// Variant is how the sites and the coordinator of a transaction watch each other. All variants
// lead to the same decision. They differ in cost and in the failures that they notice. The
// comment of recipes/zookeeper/internal/twophase has the costs.
type Variant string

const (
	// AllWatch is the text's first form: every site watches the nodes of all sites and
	// decides. The number of messages grows with the square of the number of sites. It needs
	// no coordinator after Begin.
	AllWatch Variant = "all-watch"

	// CoordinatorOnly avoids the first drawback that the text names: only the coordinator
	// watches the sites, which wait for its decision. A decision takes one step more.
	CoordinatorOnly Variant = "coordinator-only"

	// OwnNodes avoids the second: each site creates its own ephemeral node when it joins, so
	// that its death is noticed. If a site dies before the decision, even after its vote, the
	// decision is to abort. Nothing changes a decision. Only the coordinator watches, as in
	// CoordinatorOnly.
	OwnNodes Variant = "own-nodes"
)

// Variants returns all variants, in the order in which they are documented.
func Variants() []Variant { return []Variant{AllWatch, CoordinatorOnly, OwnNodes} }

// Normalize returns the variant, or [CoordinatorOnly] for "". The error matches
// [ErrInvalid] and names the variants that exist.
func (v Variant) Normalize() (Variant, error) {
	return choose("variant", v, CoordinatorOnly, Variants())
}

// TransactionConfig configures a Transaction. The zero value is the default. A site that joins
// reads the variant from the transaction.
type TransactionConfig struct {
	// Variant is how sites and coordinator watch each other; "" is CoordinatorOnly.
	Variant Variant
}

// Vote is the vote of a site, and the data of its node. It is "" before the site has voted.
type Vote string

const (
	// VoteCommit promises that the site can commit.
	VoteCommit Vote = "commit"
	// VoteAbort makes the decision "abort".
	VoteAbort Vote = "abort"
)

// Decision is the outcome of a transaction. It never changes.
type Decision struct {
	// Commit is true if all sites commit, and false if all abort.
	Commit bool
	// Reason tells people why to abort: which site voted to abort, or died.
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
	// Coordinated reports whether there is a coordinator: the session of Begin, or a waiting
	// site that has replaced it.
	Coordinated bool
}

// SiteStatus is the state of a site at one moment.
type SiteStatus struct {
	Name string
	Vote Vote
	// Joined is known only with OwnNodes.
	Joined bool
	// Dead reports that the site has joined and its session has ended.
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
