package recipes

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Transaction is a two-phase commit: a coordinator proposes something to a group
// of sites, each site votes, and all of them commit if all vote for it, or all
// of them abort. It is a name and holds no state; any number of goroutines, in
// any process, may use it for either part.
//
// Source: ZooKeeper Recipes, "Two-phased Commit". The path is the text's
// /app/Tx; its data is the payload ("even propagating the transaction can be
// done through ZooKeeper by writing it in the transaction node"); a site named i
// votes by writing "commit" or "abort" into the child s_i. Divergences:
//
//   - The decision is a node, decision, created in one transaction with checks
//     of the votes that it stands on. In the text each site (or the coordinator)
//     decides for itself when it has seen the votes. Here nobody acts on a
//     decision that is not in ZooKeeper, there can be only one, and a site that
//     comes back finds it.
//   - The child protocol records the variant and the group of sites, so that
//     strangers are refused.
//   - The child coordinator is ephemeral, so that a coordinator that dies is
//     replaced: by the first waiting site that notices. So is one that gives up.
//   - A site says when it has acted on the decision, and the last one to say so
//     deletes the transaction: see Site.Done.
//
// A site that does not vote blocks the others, as in every two-phase commit,
// until it does, or dies ([OwnNodes]), or somebody calls Abort.
type Transaction interface {
	// Path is the path the transaction was made with.
	Path() string

	// Begin creates the transaction with its payload for a group of sites, in
	// one ZooKeeper transaction. Its session becomes the coordinator's, where
	// the variant has one; it then calls Coordinate. Site names are elements of
	// paths; they are made s_<name>.
	//
	// If there is a transaction at the path the error matches ErrNodeExists; a
	// lost reply does not cause that. If ctx ends, or the session is lost,
	// after it was sent the error matches ErrUnknownOutcome too.
	Begin(ctx context.Context, payload []byte, sites ...string) error

	// Coordinate waits until the votes allow a decision, which is "abort" as
	// soon as one site votes for it, makes the decision, and returns it. If
	// there is one already it returns that. Whoever is told to may call it, not
	// only who began: it finishes what a dead coordinator has left, and several
	// at a time do no harm. If it fails in the coordinator's session, a site that
	// waits takes that place; it may be called again all the same.
	Coordinate(ctx context.Context) (Decision, error)

	// Abort decides to abort, whatever the votes, unless there is a decision,
	// and returns the one that holds. The reason is for people.
	Abort(ctx context.Context, reason string) (Decision, error)

	// Join takes part as a site: it returns the payload, and with [OwnNodes]
	// creates the site's node, which lives as long as this session. A site that
	// is not of the group is refused with ErrUnknownSite. It may be called
	// again, after the loss of a session too; but with OwnNodes a site whose
	// session has ended is dead, and the error matches ErrNotHeld, unless there
	// is a decision, which is then to be had from Wait.
	Join(ctx context.Context, site string) (Site, error)

	// Status is a picture of the transaction, which may be outdated on arrival.
	Status(ctx context.Context) (TransactionStatus, error)

	// Forget deletes a transaction whose sites are all Done. If they are not,
	// the error matches ErrUndecided and names who is missing. That there is no
	// transaction is no error. Nobody needs it but after a failure: see
	// Site.Done.
	Forget(ctx context.Context) error
}

// Site is a participant of a transaction.
//
// The methods of a transaction and its sites return an error that matches
// ErrNoTransaction when nothing has begun at the path, or it was deleted. If ctx
// ends, or the session is lost, while nobody knows what became of a change that was
// sent, it matches ErrUnknownOutcome; all but Begin may then be called again.
type Site interface {
	// Name is the site's.
	Name() string

	// Payload is the transaction's.
	Payload() []byte

	// Vote votes, once. The same vote again is no error, so a call whose
	// outcome is not known may be repeated; another one is refused with
	// ErrVoted. After VoteCommit the site must be able to commit, and must not
	// act before Wait has told it to. With [OwnNodes] a site that is dead
	// cannot vote: ErrNotHeld. A vote that comes after the decision is written
	// and changes nothing.
	Vote(ctx context.Context, vote Vote) error

	// Wait waits for the decision, making it itself where the variant has it
	// so, and where the coordinator has died. A lost connection does not end
	// the wait. It may be called by a site that has not voted.
	Wait(ctx context.Context) (Decision, error)

	// Done says that the site has acted on the decision, and will not ask for
	// it again; before there is a decision it is refused with ErrUndecided. The
	// last site's Done deletes the transaction. So the decision is kept exactly
	// until every site has acted, however long one is away; what remains of a
	// last Done that died halfway Forget deletes. It may be called again. If
	// another program keeps something below one of the transaction's children, the
	// last Done, and Forget, match ErrNotEmpty; the site is done all the same.
	Done(ctx context.Context) error
}

// Variant is who watches whom in a transaction. All variants decide the same;
// they differ in what they cost and in what they notice. The package comment of
// recipes/zookeeper has the costs.
type Variant string

const (
	// AllWatch is the text's first form: every site watches every site's node,
	// and decides. Messages grow with the square of the number of sites. It
	// needs no coordinator after Begin.
	AllWatch Variant = "all-watch"

	// CoordinatorOnly is the answer to the first drawback that the text names:
	// only the coordinator watches the sites, which wait for its decision. It
	// costs each decision one step more.
	CoordinatorOnly Variant = "coordinator-only"

	// OwnNodes is the answer to the second: each site creates its own,
	// ephemeral, node when it joins, so that its death is seen. A site that
	// dies before the decision, voted or not, is an abort; after the decision
	// nothing changes it. The coordinator alone watches, as in CoordinatorOnly.
	OwnNodes Variant = "own-nodes"

	// DefaultVariant is what the empty Variant stands for.
	DefaultVariant = CoordinatorOnly
)

// Variants returns all variants, in the order in which they are documented.
func Variants() []Variant { return []Variant{AllWatch, CoordinatorOnly, OwnNodes} }

// ParseVariant returns the variant of that name; "" is [DefaultVariant]. The
// error matches [ErrInvalid].
func ParseVariant(name string) (Variant, error) {
	if name == "" {
		return DefaultVariant, nil
	}
	if v := Variant(name); slices.Contains(Variants(), v) {
		return v, nil
	}
	return "", fmt.Errorf("%w: variant %q is unknown; one of %q", ErrInvalid, name, Variants())
}

// TransactionConfig says how to begin. Its zero value is good. Who joins finds
// the variant in the transaction.
type TransactionConfig struct {
	// Variant is who watches whom; "" is DefaultVariant.
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
	// Reason says why to abort, for people: which site voted so, or died.
	Reason string
}

// TransactionStatus is a picture of a transaction.
type TransactionStatus struct {
	Variant Variant
	Payload []byte
	// Sites are in the order in which they were given to Begin.
	Sites []SiteStatus
	// Decision is nil while there is none.
	Decision *Decision
	// Coordinated reports whether somebody has the coordinator's place: since
	// Begin, or by waiting, until its session ends or it gives up.
	Coordinated bool
}

// SiteStatus is a picture of a site.
type SiteStatus struct {
	Name string
	Vote Vote
	// Joined is told only by OwnNodes.
	Joined bool
	// Dead is a site that has joined and whose session has ended.
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
