package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Outcome is what a transaction has done.
type Outcome struct {
	// Zxid is the number of the transaction, which is the czxid of what it created and
	// the mzxid of what it set. It is 0 if the reply was lost, and ctx ended or another
	// client deleted the receipt before the number could be read.
	Zxid int64
	// Created are the paths of the transaction's creations, in order, with the
	// numbers that ZooKeeper gave them. Nil if the reply was lost.
	Created []string
}

// CommitWithReceipt is Commit for a transaction that has to happen once, though the
// reply to it may be lost. It is sent again until its outcome is known. It happens
// once all the same, or is refused (*TxnError).
//
// Looking for a GUID, as CreateProtected does, is not enough for what others may
// take away at once. An element that was put and then taken by a consumer looks
// like one that was never put. An element that is gone does not say who deleted it. So
// each transaction also sets a receipt, an ephemeral znode below dir that only this
// session writes, if it has the version that the session knows. A repetition of a
// transaction that has happened finds the version changed, and so is refused and known
// to have happened, in one request. A receipt is used again by later transactions, so it
// costs one creation for each transaction that a session has under way at a time, not
// for each transaction. (A marker for each transaction would cost two writes more.) A
// session keeps idleReceipts of those that wait, and deletes the one that has waited
// longest.
//
// Where dir is missing, parent makes it, for only the caller knows whether it is to
// stay when the last receipt has gone: Provide, or Ensure.
//
// If ctx ends, or the session is lost, after it was sent the error matches
// ErrUnknownOutcome.
func (s *Session) CommitWithReceipt(ctx context.Context, dir string, parent func(context.Context, string) error, t Txn) (Outcome, error) {
	return s.commitDraft(ctx, dir, parent, draft{txn: t})
}

// CommitRead is CommitWithReceipt for a transaction that depends on what read has found. After a
// lost connection it calls read again, before anything is sent. All that ZooKeeper compares
// is a version, which does not distinguish a znode from one that was created in its place
// during an outage. So the transaction is sent only on the connection on which read was
// called. A znode that is replaced between that read and the write goes unnoticed.
//
// An error of read is returned as it is, if the transaction has not happened.
func (s *Session) CommitRead(ctx context.Context, dir string, parent func(context.Context, string) error, read func(context.Context) (Txn, error)) (Outcome, error) {
	return s.commitDraft(ctx, dir, parent, draft{read: read})
}

// A draft is a transaction that has to happen once.
type draft struct {
	txn  Txn
	read func(context.Context) (Txn, error) // makes txn of what it finds; nil: txn depends on nothing
	on   *conn.Conn                         // on which it was read; nil if it was not
}

// update reads again.
func (d *draft) update(ctx context.Context, s *Session) (err error) {
	if d.read != nil {
		d.on = s.wire.Current() // read may use a later one, and then it is called again
		d.txn, err = d.read(ctx)
	}
	return err
}

func (s *Session) commitDraft(ctx context.Context, dir string, parent func(context.Context, string) error, d draft) (Outcome, error) {
	for {
		if err := d.update(ctx, s); err != nil {
			return Outcome{}, err
		}
		r, err := s.takeReceipt(ctx, dir, parent)
		if err != nil {
			return Outcome{}, err
		}
		outcome, err := s.commitReceipt(ctx, r, &d)
		if !errors.Is(err, errReceiptLost) {
			return outcome, err
		}
	}
}

// errReceiptLost: another client has deleted or written the receipt, and the
// transaction is known not to have happened.
var errReceiptLost = errors.New("receipt lost")

func (s *Session) commitReceipt(ctx context.Context, r *receipt, d *draft) (Outcome, error) {
	sent := false // at least once, with unknown outcome
	for {
		var guarded Txn
		guarded.Set(r.path, nil, r.version)
		guarded.Append(d.txn)
		results, err := s.commitOn(ctx, guarded, d.on)
		var refused *TxnError
		switch {
		case err == nil:
			r.version++
			s.returnReceipt(r)
			return s.outcomeOf(results), nil
		case errors.As(err, &refused) && refused.Index > 0:
			s.returnReceipt(r)
			return Outcome{}, &TxnError{Index: refused.Index - 1, Err: refused.Err}
		case refused != nil && sent:
			return s.recall(ctx, r, refused.Err)
		case refused != nil:
			s.Delete(r.path)
			if !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrBadVersion) {
				return Outcome{}, fmt.Errorf("write %s: %w", r.path, refused.Err) // nor would another one do
			}
			return Outcome{}, errReceiptLost
		case s.Unsettled(ctx, err), errors.Is(err, errMoved):
			sent = sent || !errors.Is(err, errMoved)
			if err := d.update(ctx, s); err != nil {
				return s.unlessHappened(ctx, r, sent, err)
			}
		case sent && s.Throttled(ctx, err): // only the repetition was refused
		case errors.Is(err, recipes.ErrUnknownOutcome):
			s.Delete(r.path) // its version is not known any more
			return Outcome{}, s.Because(ctx, err)
		case sent:
			s.Delete(r.path)
			return Outcome{}, fmt.Errorf("commit: %w: %w", recipes.ErrUnknownOutcome, err)
		default:
			s.returnReceipt(r)
			return Outcome{}, err
		}
	}
}

// unlessHappened returns err, because of which a transaction is not sent again. If it was
// sent before, the receipt tells whether it has happened.
func (s *Session) unlessHappened(ctx context.Context, r *receipt, sent bool, err error) (outcome Outcome, _ error) {
	if sent {
		now, readErr := Insist(ctx, s, func() (Stat, error) { return s.syncedStat(ctx, r.path) })
		if readErr != nil {
			s.Delete(r.path)
			return Outcome{}, fmt.Errorf("commit: %w: %w", recipes.ErrUnknownOutcome, readErr)
		}
		if now.Version != r.version {
			r.version, outcome.Zxid, err = now.Version, now.Mzxid, nil
		}
	}
	s.returnReceipt(r)
	return outcome, err
}

// recall learns from the refusal of a repetition whether the transaction has happened,
// and from the receipt what it was.
func (s *Session) recall(ctx context.Context, r *receipt, refusal error) (Outcome, error) {
	if !errors.Is(refusal, recipes.ErrBadVersion) {
		return Outcome{}, fmt.Errorf("%w: another client has deleted %s", recipes.ErrUnknownOutcome, r.path)
	}
	r.version++
	// If that fails, the record is zero. If the receipt has gone, the next transaction
	// finds that.
	stat, _ := Insist(ctx, s, func() (Stat, error) { return s.Stat(ctx, r.path) })
	s.returnReceipt(r)
	return Outcome{Zxid: stat.Mzxid}, nil
}

// outcomeOf leaves out the first result, the receipt's.
func (s *Session) outcomeOf(results []conn.Result) Outcome {
	outcome := Outcome{Zxid: results[0].Set.Mzxid}
	for _, r := range results[1:] {
		if r.Created != "" {
			outcome.Created = append(outcome.Created, s.local(r.Created))
		}
	}
	return outcome
}

// receipt is a znode whose version counts the transactions that it was part of.
type receipt struct {
	dir, path string
	version   int32
}

// idleReceipts is how many receipts a session keeps for later transactions. It bounds
// what is left of a path that is never used again.
const idleReceipts = 256

// receipts are those that wait for the next transaction.
type receipts struct {
	mu   sync.Mutex
	idle []*receipt // that which was used last comes last
}

// take returns a receipt below dir, or nil.
func (rs *receipts) take(dir string) *receipt {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i, r := range slices.Backward(rs.idle) {
		if r.dir == dir {
			rs.idle = slices.Delete(rs.idle, i, i+1)
			return r
		}
	}
	return nil
}

// put keeps a receipt, and returns one that is too many, or nil.
func (rs *receipts) put(r *receipt) (surplus *receipt) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.idle = append(rs.idle, r)
	if len(rs.idle) > idleReceipts {
		surplus = rs.idle[0]
		rs.idle = slices.Delete(rs.idle, 0, 1)
	}
	return surplus
}

func (s *Session) takeReceipt(ctx context.Context, dir string, parent func(context.Context, string) error) (*receipt, error) {
	if r := s.receipts.take(dir); r != nil {
		return r, nil
	}
	path, err := s.CreateProtectedIn(ctx, dir, "receipt-", nil, parent)
	return &receipt{dir: dir, path: path}, err
}

func (s *Session) returnReceipt(r *receipt) {
	if surplus := s.receipts.put(r); surplus != nil {
		s.Delete(surplus.path)
	}
}
