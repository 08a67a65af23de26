package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Txn is a ZooKeeper transaction under construction. Either all of its operations happen, or
// none. The zero value is an empty transaction.
type Txn struct {
	ops []txnOp
}

type txnOp struct {
	path string
	data []byte
	add  func(m *conn.Multi, s *Session, path string) // path is the server's
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
func (t *Txn) Append(other Txn) { t.ops = append(t.ops, other.ops...) }

func (t *Txn) add(path string, data []byte, add func(*conn.Multi, *Session, string)) {
	t.ops = append(t.ops, txnOp{path, data, add})
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
	size := packetSlack
	for _, op := range t.ops {
		size += len(s.full(op.path)) + len(op.data) + s.aclSize + opSlack
	}
	if size > s.wire.MaxPacket {
		return fmt.Errorf("%w: a transaction of %d operations and about %d bytes; SessionConfig.MaxPacket is %d", recipes.ErrTooLarge, len(t.ops), size, s.wire.MaxPacket)
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
			return nil, &TxnError{Index: i, Err: answer("operation on", t.ops[i].path, r.Refused)}
		}
	}
	return results, nil
}

// GuardedWrite converts ops to a transaction, which commit sends together with its guard. Its
// errors are those that recipes.Grant.Write documents.
func GuardedWrite(ctx context.Context, commit func(context.Context, Txn) error, ops []recipes.Op) error {
	var t Txn
	for i, op := range ops {
		if err := op.Validate(); err != nil {
			return fmt.Errorf("guarded write: operation %d: %w", i, err)
		}
		switch op.Kind() {
		case "create":
			t.Create(op.Path, op.Data, false)
		case "set":
			t.Set(op.Path, op.Data, op.Version)
		case "delete":
			t.Delete(op.Path, op.Version)
		}
	}
	err := commit(ctx, t)
	var refused *TxnError
	if errors.As(err, &refused) {
		return &recipes.WriteError{Index: refused.Index, Op: ops[refused.Index], Err: refused.Err}
	}
	return err
}
