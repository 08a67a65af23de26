package recipes

import "fmt"

// AnyVersion, as a version, matches every version.
const AnyVersion int32 = -1

// OpKind is the kind of an [Op].
type OpKind int

// The kinds of operations.
const (
	OpCreate OpKind = iota + 1
	OpSet
	OpDelete
)

func (k OpKind) String() string {
	switch k {
	case OpCreate:
		return "create"
	case OpSet:
		return "set"
	case OpDelete:
		return "delete"
	}
	return "unknown"
}

// Op is one operation of a guarded write: [Create], [Set] or [Delete].
type Op struct {
	Kind    OpKind
	Path    string // below the session's chroot
	Data    []byte // of OpCreate and OpSet
	Version int32  // of OpSet and OpDelete; AnyVersion to not compare
}

// Create creates a persistent znode with SessionConfig.ACL. Its parent must exist.
func Create(path string, data []byte) Op {
	return Op{Kind: OpCreate, Path: path, Data: data}
}

// Set replaces the data of a znode if its version matches.
func Set(path string, data []byte, version int32) Op {
	return Op{Kind: OpSet, Path: path, Data: data, Version: version}
}

// Delete deletes a znode without children if its version matches.
func Delete(path string, version int32) Op {
	return Op{Kind: OpDelete, Path: path, Version: version}
}

// Validate reports what is wrong with the operation, as an ErrInvalid.
func (o Op) Validate() error {
	if o.Kind < OpCreate || o.Kind > OpDelete {
		return fmt.Errorf("%w: operation kind %d is unknown", ErrInvalid, int(o.Kind))
	}
	if err := ValidatePath(o.Path); err != nil {
		return fmt.Errorf("%s: %w", o.Kind, err)
	}
	if o.Path == "/" {
		return fmt.Errorf("%w: %s: the root cannot be written", ErrInvalid, o.Kind)
	}
	if o.Version < AnyVersion {
		return fmt.Errorf("%w: %s %s: version %d; a version is AnyVersion (-1) or not negative", ErrInvalid, o.Kind, o.Path, o.Version)
	}
	return nil
}

// WriteError names the operation because of which ZooKeeper refused a guarded write. Nothing
// was written, and the grant is held.
type WriteError struct {
	Index int   // into the operations given to Write
	Op    Op    // that operation
	Err   error // matches ErrNoNode, ErrNodeExists, ErrBadVersion, ErrNotEmpty, ErrAccessDenied or ErrInternal
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("guarded write: operation %d (%s %s): %v", e.Index, e.Op.Kind, e.Op.Path, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }
