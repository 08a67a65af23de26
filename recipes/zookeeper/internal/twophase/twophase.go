package twophase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Names of the children of a transaction.
const (
	protocolName    = "protocol"
	idPrefix        = "id-"
	decisionName    = "decision"
	coordinatorName = "coordinator"
	sitePrefix      = "s_"      // the vote of a site
	joinedPrefix    = "joined_" // with OwnNodes: the record that it has joined
	donePrefix      = "done_"
)

type twoPhase struct {
	znode.Recipe
	variant recipes.Variant // of Begin
}

// protocol is the content of the child "protocol".
type protocol struct {
	ID      string          `json:"id"`
	Variant recipes.Variant `json:"variant"`
	Sites   []string        `json:"sites"`

	created int64 // the czxid of everything that Begin creates
}

func (p protocol) split(names []string, prefix string) (present, missing []string) {
	for _, s := range p.Sites {
		if slices.Contains(names, prefix+s) {
			present = append(present, s)
		} else {
			missing = append(missing, s)
		}
	}
	return present, missing
}

// New returns the two-phase commit at path.
func New(s *session.Session, path string, cfg recipes.TransactionConfig) (recipes.Transaction, error) {
	variant, err := cfg.Variant.Normalize()
	r, err := znode.New(s, "transaction", path, znode.NotRoot(path, "the root cannot be a transaction"), err)
	if err != nil {
		return nil, err
	}
	return &twoPhase{r, variant}, nil
}

// failed is Failed. If a znode is missing, the transaction is missing, because its znodes
// are deleted only together.
func (t *twoPhase) failed(err error) error {
	if errors.Is(err, recipes.ErrNoNode) {
		err = fmt.Errorf("%w (%w)", recipes.ErrNoTransaction, err)
	}
	return t.Failed(err)
}

// guard begins a ZooKeeper transaction with a check of a znode whose name is used once. So
// the transaction succeeds only for this beginning, and not for a later one at the path.
// commit does not count the check as an operation.
func (t *twoPhase) guard(p protocol) (guarded session.Txn) {
	guarded.Check(t.Child(idPrefix+p.ID), recipes.AnyVersion)
	return guarded
}

// commit commits a guarded transaction until its outcome is known. The transaction must
// be harmless to send twice. commit returns the index of the refused operation, where 0 is
// the first one after the guard, or -1.
func (t *twoPhase) commit(ctx context.Context, guarded session.Txn) (refused int, err error) {
	at, err := t.send(ctx, guarded)
	if at == 0 {
		err = fmt.Errorf("%w: %w", recipes.ErrNoTransaction, err)
	}
	return max(at, 0) - 1, err
}

// send commits a transaction until its outcome is known, and returns the index of the refused
// operation, or -1. If the transaction was sent before, an error other than a refusal leaves the
// outcome unknown.
func (t *twoPhase) send(ctx context.Context, txn session.Txn) (refused int, err error) {
	sent := false
	for err = t.Session.Commit(ctx, txn); t.Session.Unsettled(ctx, err); err = t.Session.Commit(ctx, txn) {
		sent = true
	}
	refused = znode.RefusedOp(err)
	if sent && refused < 0 {
		err = znode.UnknownOutcome(err)
	}
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		err = t.Session.Because(ctx, err)
	}
	return refused, err
}

// read reads the payload and the protocol of one beginning.
func (t *twoPhase) read(ctx context.Context) (payload []byte, p protocol, err error) {
	for {
		p, err = t.protocol(ctx)
		if err != nil {
			return nil, protocol{}, err
		}
		node, err := t.Session.Get(ctx, t.Path())
		if err != nil {
			return nil, protocol{}, err
		}
		if node.Stat.Czxid <= p.created {
			return node.Data, p, nil
		} // otherwise another transaction has begun in between
	}
}

func (t *twoPhase) protocol(ctx context.Context) (p protocol, err error) {
	record, err := znode.ReadSynced(ctx, t.Session, t.Path(), func() (session.Node, error) {
		return t.Session.Get(ctx, t.Child(protocolName))
	})
	if err != nil {
		return protocol{}, err
	}
	if err := json.Unmarshal(record.Data, &p); err != nil {
		return protocol{}, fmt.Errorf("%w: %s: %v", recipes.ErrInvalid, t.Child(protocolName), err)
	}
	p.created = record.Stat.Czxid
	return p, nil
}

func (t *twoPhase) Status(ctx context.Context) (recipes.TransactionStatus, error) {
	payload, p, err := t.read(ctx)
	if err != nil {
		return recipes.TransactionStatus{}, t.failed(err)
	}
	names, err := t.Session.Children(ctx, t.Path())
	if err != nil {
		return recipes.TransactionStatus{}, t.failed(err)
	}
	status := recipes.TransactionStatus{
		Variant: p.Variant, Payload: payload, Coordinated: slices.Contains(names, coordinatorName),
	}
	for _, s := range p.Sites {
		site := recipes.SiteStatus{
			Name:   s,
			Joined: slices.Contains(names, joinedPrefix+s),
			Done:   slices.Contains(names, donePrefix+s),
		}
		node, err := t.Session.Get(ctx, t.Child(sitePrefix+s))
		switch {
		case err == nil:
			site.Vote = recipes.Vote(node.Data)
		case errors.Is(err, recipes.ErrNoNode):
			site.Dead = site.Joined
		default:
			return recipes.TransactionStatus{}, t.failed(err)
		}
		status.Sites = append(status.Sites, site)
	}
	d, decided, err := t.decision(ctx, p)
	if err != nil {
		return recipes.TransactionStatus{}, t.failed(err)
	}
	if decided {
		status.Decision = &d
	}
	return status, nil
}

// decision reads the decision, if there is one. The decision contains the ID of its
// transaction, so no site acts on the decision of a later transaction at the path.
func (t *twoPhase) decision(ctx context.Context, p protocol) (d recipes.Decision, decided bool, err error) {
	node, err := t.Session.Get(ctx, t.Child(decisionName))
	if errors.Is(err, recipes.ErrNoNode) {
		return recipes.Decision{}, false, nil
	}
	if err != nil {
		return recipes.Decision{}, false, err
	}
	words, id, _ := strings.Cut(string(node.Data), "\n")
	if id != p.ID {
		return recipes.Decision{}, false, fmt.Errorf("%w: another transaction has begun at the path", recipes.ErrNoTransaction)
	}
	word, reason, _ := strings.Cut(words, " ")
	switch recipes.Vote(word) {
	case recipes.VoteCommit:
		return recipes.Decision{Commit: true}, true, nil
	case recipes.VoteAbort:
		return recipes.Decision{Reason: reason}, true, nil
	}
	return recipes.Decision{}, false, fmt.Errorf("%w: %s holds %q", recipes.ErrInvalid, t.Child(decisionName), node.Data)
}

func (t *twoPhase) Abort(ctx context.Context, reason string) (recipes.Decision, error) {
	p, err := t.protocol(ctx)
	if err != nil {
		return recipes.Decision{}, t.failed(err)
	}
	d, err := t.decide(ctx, p, recipes.Decision{Reason: reason}, t.guard(p), 0)
	return d, t.failed(err)
}

// decide creates the decision together with n checks, or returns the existing one. If a
// check fails, it returns znode.ErrReadAgain: the votes that the decision rests on have
// changed. Sending it again is harmless: there is only one decision, and the second attempt
// returns it.
func (t *twoPhase) decide(ctx context.Context, p protocol, d recipes.Decision, guarded session.Txn, n int) (recipes.Decision, error) {
	word := string(recipes.VoteCommit)
	if !d.Commit {
		d.Reason = strings.ToValidUTF8(strings.Join(strings.Fields(d.Reason), " "), "\uFFFD") // one line of text
		word = strings.TrimSpace(string(recipes.VoteAbort) + " " + d.Reason)
	}
	guarded.Create(t.Child(decisionName), []byte(word+"\n"+p.ID), false)
	at, err := t.commit(ctx, guarded)
	switch {
	case err == nil:
		return d, nil
	case at == n && errors.Is(err, recipes.ErrNodeExists):
		return t.decided(ctx, p)
	case at >= 0 && at < n && (errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrBadVersion)):
		return recipes.Decision{}, znode.ErrReadAgain
	}
	return recipes.Decision{}, err
}

func (t *twoPhase) Begin(ctx context.Context, payload []byte, sites ...string) error {
	_, err := t.BeginAs(ctx, payload, sites...)
	return err
}

// BeginAs is Begin, and returns the transaction's ID, which no other transaction has.
func (t *twoPhase) BeginAs(ctx context.Context, payload []byte, sites ...string) (id string, err error) {
	if err := recipes.ValidateSites(sites); err != nil {
		return "", t.failed(err)
	}
	p := protocol{ID: uuid.NewString(), Variant: t.variant, Sites: sites}
	record, err := json.Marshal(p)
	if err != nil {
		return "", t.failed(fmt.Errorf("%w: %v", recipes.ErrInvalid, err))
	}
	var begin session.Txn
	begin.Create(t.Path(), payload, false)
	begin.Create(t.Child(protocolName), record, false)
	begin.Create(t.Child(idPrefix+p.ID), nil, false)
	if t.variant != recipes.OwnNodes {
		for _, s := range sites {
			begin.Create(t.Child(sitePrefix+s), nil, false) // "leaves the content undefined"
		}
	}
	if t.variant != recipes.AllWatch {
		begin.Create(t.Child(coordinatorName), nil, true)
	}
	if err := t.commitBeginning(ctx, t.Path()+"-begun-"+p.ID, begin); err != nil {
		return "", err
	}
	return p.ID, nil
}

// commitBeginning commits the beginning exactly once. It also creates a marker beside the
// transaction. From the marker, a repeated attempt learns that an earlier one was committed, even
// if the transaction was completed and deleted since. It is deleted when the outcome is known.
func (t *twoPhase) commitBeginning(ctx context.Context, marker string, beginning session.Txn) error {
	var marked session.Txn
	marked.Create(marker, nil, true)
	marked.Append(beginning)
	for {
		at, err := t.send(ctx, marked)
		switch {
		case err == nil, at == 0 && errors.Is(err, recipes.ErrNodeExists):
			t.Session.Delete(marker)
			return nil
		case at == 0 && errors.Is(err, recipes.ErrNoNode):
			if err = t.Session.Ensure(ctx, gopath.Dir(t.Path())); err == nil {
				continue
			}
		case errors.Is(err, recipes.ErrUnknownOutcome):
			t.Session.Delete(marker)
			t.resign() // after this error the caller may not call Coordinate
		}
		return t.failed(err)
	}
}
