package recipes

import (
	"context"
	"time"
)

// Names is a name service: a directory in which each name is given once, with
// data. It is a name itself, holds no state, and may be used by any number of
// goroutines.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "Name service and
// configuration are two of the primary applications of ZooKeeper. These two
// functions are provided directly by the ZooKeeper API." A name is a child of the
// path, called by the name itself: ephemeral if it was registered for as long as
// its session lives, persistent if for good. Children whose names start with _c_
// are not names: they are receipts (RegisterPersistent).
type Names interface {
	// Path is the path the directory was made with.
	Path() string

	// Register takes the name for as long as this session lives. If it is taken,
	// also by this session, the error matches ErrNodeExists and is a *TakenError
	// that says by whom. A name that ValidateName refuses is ErrInvalid. The terms
	// are otherwise those of Group.Join: a lost reply is looked after, a cancelled
	// call leaves nothing behind, and nothing registers again by itself.
	Register(ctx context.Context, name string, data []byte) (Registration, error)

	// RegisterPersistent takes the name until somebody unregisters it. If it is
	// taken, the error is that of Register. It happens once though a reply is
	// lost: what a name that is there already says is known for another's. To
	// know that, a session keeps one ephemeral child beside the names, its
	// receipt. If ctx ends, or the session is lost, after it was sent, the error
	// matches ErrUnknownOutcome.
	RegisterPersistent(ctx context.Context, name string, data []byte) error

	// Unregister takes back a name that was registered for good, whoever did, if
	// it is the registration with that token (Record.Token), or, for 0, whichever
	// there is. It returns ErrNoNode if the name is not registered, and an error
	// that matches ErrBadVersion if it is registered with another token. A name
	// that a session has is the session's to give back: the error is a
	// *TakenError. A name that is given up and taken again, by another, within the
	// way of the last request is not told from the former. Unknown outcomes are
	// as with RegisterPersistent.
	Unregister(ctx context.Context, name string, token Token) error

	// Lookup returns the registration of a name, or an error that matches
	// ErrNoNode. It costs one read, and may be outdated on arrival.
	Lookup(ctx context.Context, name string) (Record, error)

	// List returns all registrations, sorted by name, on the terms of
	// Group.Members.
	List(ctx context.Context) ([]Record, error)

	// Watch returns a channel that first gives the registration of a name and
	// then every change: other data, another's registration, or a Record that is
	// None when nobody has the name. The terms are those of Group.Watch. It costs
	// a read with a watch for each change, and one more where nobody has the name.
	Watch(ctx context.Context, name string) (<-chan Record, error)
}

// Registration is a name that this session has. It is a Grant, on the terms of
// Membership: Done closes when the name is gone.
type Registration interface {
	Grant

	// Name is the name.
	Name() string

	// Update replaces the data, on the terms of Membership.Update.
	Update(ctx context.Context, data []byte) error

	// Unregister gives the name back, on the terms of Hold.Release.
	Unregister(ctx context.Context) error
}

// Record is a registered name. The zero Record is None.
type Record struct {
	Name  string
	Znode string
	// Token is the czxid of the znode: it tells a registration from a later one
	// of the same name.
	Token Token
	// SessionID is the session that has the name; 0 if it is registered for good.
	SessionID int64
	// Since is when it was registered, by the server's clock.
	Since time.Time
	Data  []byte
}

// None reports that nobody has the name.
func (r Record) None() bool { return r.Znode == "" }
