package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Outcome is the result of a transaction.
type Outcome struct {
	// Zxid is the id of the transaction. It is the czxid of the znodes that it created and the
	// mzxid of those that it set. It is 0 if the reply was lost, and ctx was done or another
	// client deleted the receipt before the id could be read.
	Zxid int64
	// Created are the paths of the created znodes, in order, with the numbers that ZooKeeper
	// appended. Nil if the reply was lost.
	Created []string
	// Set are the new records of the znodes whose data was set, in order. Nil if the reply was
	// lost.
	Set []Stat
}

// CommitWithReceipt is Commit for a transaction that must happen exactly once, even if its
// reply is lost. It repeats the transaction until the outcome is known: it has happened once,
// or was refused (*TxnError).
//
// Searching for a GUID, as CreateProtected does, is not enough for znodes that other clients
// may delete at once. An element that a consumer has already taken looks like an element that
// was never put. A missing element does not show who deleted it. So each transaction also sets
// a receipt: an ephemeral znode below dir that only this session writes, conditional on its
// known version. If the transaction has happened, its repetition finds another version, and the
// refusal shows that it has happened.
//
// Later transactions use the receipt again. So a session creates a receipt for each transaction
// that it has in flight at the same time, not for each transaction. (A marker for each
// transaction would cost two more writes.) A session keeps up to idleReceipts idle receipts, with
// paths of a quarter of MaxPacket at most, and then deletes those that have been idle longest.
//
// If dir is missing, parent creates it: Provide or Ensure. Only the caller knows whether dir
// must remain after the last receipt was deleted.
//
// If ctx is done or the session is lost after the transaction was sent, the error matches
// ErrUnknownOutcome.
func (s *Session) CommitWithReceipt(ctx context.Context, dir string, parent func(context.Context, string) error, t Txn) (Outcome, error) {
	return s.commitDraft(ctx, dir, parent, draft{txn: t})
}

// CommitWithNote is CommitWithReceipt, and writes a note into the receipt, in the same
// transaction. If this process ends before it has passed on what the transaction has done, the
// process that resumes the session reads the note: see Notes.
//
// After a success no other transaction uses the receipt, and so the note remains, until the
// caller calls release. It must do so, once, when the note is no longer needed.
func (s *Session) CommitWithNote(ctx context.Context, dir string, parent func(context.Context, string) error, t Txn, note []byte) (_ Outcome, release func(), _ error) {
	var kept *receipt
	outcome, err := s.commitDraft(ctx, dir, parent, draft{txn: t, note: note, kept: &kept})
	if err != nil {
		return Outcome{}, nil, err
	}
	return outcome, func() { s.returnReceipt(kept) }, nil
}

// Notes reads the notes in the session's receipts below dir. In a session that was resumed, it
// returns those of the process before, until DropRest deletes them. It needs ZooKeeper 3.6, which
// can list a session's ephemeral znodes.
func (s *Session) Notes(ctx context.Context, dir string) (notes [][]byte, err error) {
	all, err := s.listEphemerals(ctx, dir)
	if err != nil {
		return nil, err
	}
	nodes, err := s.GetAll(ctx, all)
	for _, n := range nodes {
		switch {
		case errors.Is(n.Err, recipes.ErrNoNode):
		case n.Err != nil:
			return nil, n.Err
		case len(n.Value.Data) > 0:
			notes = append(notes, n.Value.Data)
		}
	}
	return notes, err
}

// CommitRead is CommitWithReceipt for a transaction that depends on what read returns. read must
// add what makes the server refuse the transaction if that has changed. The receipt adds that dir
// was not replaced, because CommitRead calls read when the receipt exists: dir cannot be deleted
// without the receipt, and no other client makes a znode of that name.
//
// After a lost connection it calls read again before it sends anything, and sends the transaction
// only on the connection on which read was called. So what other programs have replaced during an
// outage is noticed too.
//
// If the transaction has not happened, CommitRead returns an error of read unchanged.
func (s *Session) CommitRead(ctx context.Context, dir string, parent func(context.Context, string) error, read func(context.Context) (Txn, error)) (Outcome, error) {
	return s.commitDraft(ctx, dir, parent, draft{read: read})
}

// CommitBelow is CommitWithReceipt for a transaction that depends on what the caller has read of
// dir, and compares only its version. While the session has a receipt below dir, dir cannot be
// replaced. So if the session had none before the call, or another client has deleted it, nothing
// has happened, and the error is ErrNoReceipt: the session has a receipt now, and the caller reads
// again.
func (s *Session) CommitBelow(ctx context.Context, dir string, parent func(context.Context, string) error, t Txn) (Outcome, error) {
	return s.commitDraft(ctx, dir, parent, draft{txn: t, below: true})
}

// ErrNoReceipt is described at CommitBelow.
var ErrNoReceipt = errors.New("no receipt")

// A draft is a transaction that must happen once.
type draft struct {
	txn   Txn
	note  []byte                             // see CommitWithNote
	kept  **receipt                          // where to leave the receipt after a success; nil: with the idle ones
	below bool                               // see CommitBelow
	read  func(context.Context) (Txn, error) // builds txn from what it reads; nil: txn is fixed
	on    *conn.Conn                         // the connection of read; nil without read
}

// update calls read again.
func (d *draft) update(ctx context.Context, s *Session) (err error) {
	if d.read != nil {
		d.on = s.wire.Current() // if read uses a later connection, it is called again
		d.txn, err = d.read(ctx)
	}
	return err
}

// done puts the receipt of a transaction that has happened where later ones find it.
func (d *draft) done(s *Session, r *receipt) {
	if d.kept != nil {
		*d.kept = r
		return
	}
	s.returnReceipt(r)
}

func (s *Session) commitDraft(ctx context.Context, dir string, parent func(context.Context, string) error, d draft) (Outcome, error) {
	for {
		if err := d.update(ctx, s); err != nil {
			return Outcome{}, err
		}
		r, made, err := s.takeReceipt(ctx, dir, parent)
		if err == nil && made {
			if err = d.update(ctx, s); d.below {
				err = ErrNoReceipt
			}
			if err != nil {
				s.returnReceipt(r)
			}
		}
		if err != nil {
			return Outcome{}, err
		}
		outcome, err := s.commitReceipt(ctx, r, &d)
		if !errors.Is(err, errReceiptLost) {
			return outcome, err
		}
	}
}

// errReceiptLost means that another client has deleted or written the receipt, and the
// transaction has not happened.
var errReceiptLost = errors.New("receipt lost")

func (s *Session) commitReceipt(ctx context.Context, r *receipt, d *draft) (Outcome, error) {
	sent := false // at least once, with an unknown outcome
	for {
		var guarded Txn
		guarded.Set(r.path, d.note, r.version)
		guarded.Append(d.txn)
		results, err := s.commitOn(ctx, guarded, d.on)
		var refused *TxnError
		switch {
		case err == nil:
			r.version++
			d.done(s, r)
			return s.outcomeOf(results), nil
		case errors.As(err, &refused) && refused.Index > 0:
			s.returnReceipt(r)
			return Outcome{}, &TxnError{Index: refused.Index - 1, Err: refused.Err}
		case refused != nil && sent:
			return s.recall(ctx, r, d, refused.Err)
		case refused != nil:
			s.Delete(r.path)
			if !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrBadVersion) {
				return Outcome{}, fmt.Errorf("write %s: %w", r.path, refused.Err) // another receipt would not help
			}
			return Outcome{}, errReceiptLost
		case s.Unsettled(ctx, err), errors.Is(err, errMoved):
			sent = sent || !errors.Is(err, errMoved)
			if err := d.update(ctx, s); err != nil {
				return s.unlessHappened(ctx, r, d, sent, err)
			}
		case sent && s.Throttled(ctx, err): // only the repetition was refused
		case errors.Is(err, recipes.ErrUnknownOutcome):
			s.Delete(r.path) // the version of the receipt is unknown
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

// unlessHappened returns err, the reason why a transaction is not sent again. If it was sent
// before, the version of the receipt shows whether it has happened.
func (s *Session) unlessHappened(ctx context.Context, r *receipt, d *draft, sent bool, err error) (outcome Outcome, _ error) {
	if sent {
		now, readErr := RetryThrottled(ctx, s, func() (Stat, error) { return s.syncedStat(ctx, r.path) })
		if readErr != nil {
			s.Delete(r.path)
			return Outcome{}, fmt.Errorf("commit: %w: %w", recipes.ErrUnknownOutcome, readErr)
		}
		if now.Version != r.version {
			r.version, outcome.Zxid = now.Version, now.Mzxid
			d.done(s, r)
			return outcome, nil
		}
	}
	s.returnReceipt(r)
	return outcome, err
}

// recall concludes from the refusal of a repetition whether the transaction has happened, and
// reads its id from the receipt.
func (s *Session) recall(ctx context.Context, r *receipt, d *draft, refusal error) (Outcome, error) {
	if !errors.Is(refusal, recipes.ErrBadVersion) {
		return Outcome{}, fmt.Errorf("%w: another client has deleted %s", recipes.ErrUnknownOutcome, r.path)
	}
	r.version++
	// If the read fails, the record is zero. If the receipt is deleted, the next transaction
	// notices.
	stat, _ := RetryThrottled(ctx, s, func() (Stat, error) { return s.Stat(ctx, r.path) })
	d.done(s, r)
	return Outcome{Zxid: stat.Mzxid}, nil
}

func (s *Session) outcomeOf(results []conn.Result) Outcome {
	outcome := Outcome{Zxid: results[0].Set.Mzxid}
	for _, r := range results[1:] {
		if r.Created != "" {
			outcome.Created = append(outcome.Created, s.local(r.Created))
		}
		if r.Set.Mzxid != 0 {
			outcome.Set = append(outcome.Set, r.Set)
		}
	}
	return outcome
}

// receipt is a znode whose version counts the transactions that have set it.
type receipt struct {
	dir, path string
	version   int32
}

const (
	// idleReceipts limits the receipts that a session keeps for later transactions. So it limits
	// what remains at paths that are never used again.
	idleReceipts = 256
	// idleDivisor is the part of MaxPacket that their paths may have: see ephemerals.
	idleDivisor = 4
)

type receipts struct {
	mu    sync.Mutex
	idle  []*receipt // the one used last is at the end
	bytes int        // of their paths, in the session's last transaction
}

// take returns an idle receipt below dir, or nil.
func (rs *receipts) take(dir string) *receipt {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i, r := range slices.Backward(rs.idle) {
		if r.dir == dir {
			rs.remove(i)
			return r
		}
	}
	return nil
}

// put adds an idle receipt. It removes those above a limit, except this one, and returns them.
func (rs *receipts) put(r *receipt, mostBytes int) (surplus []*receipt) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.idle = append(rs.idle, r)
	rs.bytes += r.size()
	for len(rs.idle) > 1 && (len(rs.idle) > idleReceipts || rs.bytes > mostBytes) {
		surplus = append(surplus, rs.idle[0])
		rs.remove(0)
	}
	return surplus
}

// remove removes an idle receipt. The caller holds the mutex.
func (rs *receipts) remove(i int) {
	rs.bytes -= rs.idle[i].size()
	rs.idle = slices.Delete(rs.idle, i, i+1)
}

func (r *receipt) size() int { return len(r.path) + pathBytes }

func (s *Session) takeReceipt(ctx context.Context, dir string, parent func(context.Context, string) error) (r *receipt, made bool, err error) {
	if r := s.receipts.take(dir); r != nil {
		return r, false, nil
	}
	path, err := s.CreateProtectedIn(ctx, dir, "receipt-", nil, parent)
	return &receipt{dir: dir, path: path}, true, err
}

func (s *Session) returnReceipt(r *receipt) {
	for _, surplus := range s.receipts.put(r, s.wire.MaxPacket/idleDivisor) {
		s.Delete(surplus.path)
	}
}

// Txn is a ZooKeeper transaction under construction. Either all of its operations happen, or
// none. The zero value is an empty transaction.
type Txn struct {
	ops      []txnOp
	bytes    int // of the paths and the data
	reserved int
}

type txnOp struct {
	path      string
	data      []byte
	ephemeral bool
	add       func(m *conn.Multi, s *Session, path string) // path is the server's
}

// Check adds a check that path exists and has the version (-1: any).
func (t *Txn) Check(path string, version int32) {
	t.add(path, nil, func(m *conn.Multi, _ *Session, full string) { m.Check(full, version) })
}

// Create adds the creation of a persistent or ephemeral znode.
func (t *Txn) Create(path string, data []byte, ephemeral bool) {
	t.create(path, data, conn.Persistent, ephemeral)
}

// CreateSequential adds the creation of a znode to whose name ZooKeeper appends the parent's
// next number.
func (t *Txn) CreateSequential(path string, data []byte, ephemeral bool) {
	t.create(path, data, conn.Sequence, ephemeral)
}

func (t *Txn) create(path string, data []byte, flags int32, ephemeral bool) {
	if ephemeral {
		flags |= conn.Ephemeral
	}
	t.add(path, data, func(m *conn.Multi, s *Session, full string) { m.Create(full, data, flags, s.acl) })
	t.ops[len(t.ops)-1].ephemeral = ephemeral
}

// Set adds a change of data, conditional on the version.
func (t *Txn) Set(path string, data []byte, version int32) {
	t.add(path, data, func(m *conn.Multi, _ *Session, full string) { m.Set(full, data, version) })
}

// Delete adds a deletion, conditional on the version.
func (t *Txn) Delete(path string, version int32) {
	t.add(path, nil, func(m *conn.Multi, _ *Session, full string) { m.Delete(full, version) })
}

// Len returns the number of operations.
func (t *Txn) Len() int { return len(t.ops) }

// Append appends the operations of another transaction.
func (t *Txn) Append(other Txn) {
	t.ops = append(t.ops, other.ops...)
	t.bytes += other.bytes
}

// Reserve makes TxnFits leave room for n more bytes.
func (t *Txn) Reserve(n int) { t.reserved += n }

func (t *Txn) add(path string, data []byte, add func(*conn.Multi, *Session, string)) {
	t.ops = append(t.ops, txnOp{path: path, data: data, add: add})
	t.bytes += len(path) + len(data)
}

// opSlack is the room for the headers of one operation.
const opSlack = 64

// TxnError reports which operation of a transaction the server refused.
type TxnError struct {
	Index int
	Err   error // matches a sentinel
}

func (e *TxnError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }
func (e *TxnError) Unwrap() error { return e.Err }

// Commit sends the transaction at most once. A refusal is a *TxnError. If the connection ends
// or ctx is done after it was sent, the error matches ErrUnknownOutcome.
func (s *Session) Commit(ctx context.Context, t Txn) error {
	_, err := s.commitOn(ctx, t, nil)
	return err
}

// TxnFits returns an ErrTooLarge if the transaction does not fit into a packet.
func (s *Session) TxnFits(t Txn) error {
	size := packetSlack + t.reserved + t.bytes + len(t.ops)*(len(s.wire.Chroot)+s.aclSize+opSlack)
	if size > s.wire.MaxPacket {
		return fmt.Errorf("%w: a transaction of %d operations and about %d bytes; SessionConfig.MaxPacket (max_packet) is %d; raise it and the servers' jute.maxbuffer, or write less", recipes.ErrTooLarge, len(t.ops), size, s.wire.MaxPacket)
	}
	return nil
}

// errMoved means that the connection to which a transaction was bound has ended, and nothing
// was sent.
var errMoved = errors.New("the connection has ended")

// commitOn sends a transaction. If on is not nil, it sends it only on that connection.
func (s *Session) commitOn(ctx context.Context, t Txn, on *conn.Conn) ([]conn.Result, error) {
	if err := s.TxnFits(t); err != nil {
		return nil, err
	}
	var m conn.Multi
	for _, op := range t.ops {
		if op.ephemeral {
			created, err := s.reserve(ctx, op.path, true)
			if err != nil {
				return nil, err
			}
			defer created()
		}
		op.add(&m, s, s.full(op.path))
	}
	results, err := once(ctx, s, "commit", "a transaction", func() ([]conn.Result, error) {
		results, err := cmp.Or(on, s.wire.Current()).Multi(m)
		if on != nil && errors.Is(err, conn.ErrNotSent) {
			err = errMoved
		}
		return results, err
	})
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if r.Refused != nil {
			refused := answer("operation on", t.ops[i].path, r.Refused)
			if dir, name := gopath.Split(t.ops[i].path); IsDeletions(name) {
				refused = countDenied(gopath.Clean(dir), refused)
			}
			return nil, &TxnError{Index: i, Err: refused}
		}
	}
	return results, nil
}
