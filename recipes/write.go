package recipes

import "fmt"

// AnyVersion, as a version, matches every version.
const AnyVersion int32 = -1

// Op is one operation of a guarded write. [Create], [Set] and [Delete] return one. The zero
// value is invalid.
type Op struct {
	kind    string
	Path    string // below the session's chroot
	Data    []byte // of Create and Set
	Version int32  // of Set and Delete; AnyVersion to not compare
}

// Kind is "create", "set" or "delete", after the function that returned the operation.
func (o Op) Kind() string { return o.kind }

// Create creates a persistent znode with SessionConfig.ACL. Its parent must exist.
func Create(path string, data []byte) Op {
	return Op{kind: "create", Path: path, Data: data}
}

// Set replaces the data of a znode if its version matches.
func Set(path string, data []byte, version int32) Op {
	return Op{kind: "set", Path: path, Data: data, Version: version}
}

// Delete deletes a znode without children if its version matches.
func Delete(path string, version int32) Op {
	return Op{kind: "delete", Path: path, Version: version}
}

// Validate reports what is wrong with the operation, as an ErrInvalid.
func (o Op) Validate() error {
	if o.kind == "" {
		return fmt.Errorf("%w: make an operation with Create, Set or Delete; this one is empty", ErrInvalid)
	}
	if err := ValidatePath(o.Path); err != nil {
		return fmt.Errorf("%s: %w", o.kind, err)
	}
	if o.Path == "/" {
		return fmt.Errorf("%w: %s: the root cannot be written", ErrInvalid, o.kind)
	}
	if o.Version < AnyVersion {
		return fmt.Errorf("%w: %s %s: version %d; a version is AnyVersion (-1) or not negative", ErrInvalid, o.kind, o.Path, o.Version)
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
	return fmt.Sprintf("guarded write: operation %d (%s %s): %v", e.Index, e.Op.kind, e.Op.Path, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }
