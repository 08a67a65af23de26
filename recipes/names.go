package recipes

import (
	"context"
	"time"
)

// Names is a name service: a directory in which each name is given once, with
// data. A Names is a path and holds no state. Any number of goroutines may use it.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "Name service and
// configuration are two of the primary applications of ZooKeeper. These two
// functions are provided directly by the ZooKeeper API."
//
// A name is a child of the path, called by the name itself. It is ephemeral if it
// was registered for as long as its session lives, and persistent if for good.
// Children whose names start with _c_ are not names: they are receipts
// (RegisterPersistent).
type Names interface {
	// Path is the path the directory was made with.
	Path() string

	// Register takes the name for as long as this session lives. If it is taken,
	// also by this session, the error matches ErrNodeExists and is a *TakenError that
	// says which session has it. A name that ValidateName refuses is ErrInvalid.
	//
	// The terms are otherwise those of Group.Join. After a lost reply Register finds
	// out what happened, a cancelled call leaves nothing behind, and nothing
	// registers again by itself.
	Register(ctx context.Context, name string, data []byte) (Registration, error)

	// RegisterPersistent takes the name until somebody unregisters it. If it is
	// taken, the error is that of Register.
	//
	// It happens once, also when a reply is lost: a receipt tells whether a name that
	// is there is this call's or another's. The receipt is an ephemeral child beside
	// the names, of which a session keeps one. If ctx ends, or the session is lost,
	// after the request was sent, the error matches ErrUnknownOutcome.
	RegisterPersistent(ctx context.Context, name string, data []byte) error

	// Unregister removes a name that was registered for good, by any session. The
	// token is that of the registration to remove (Record.Token), or 0 for any.
	//
	// If the name is not registered, the error matches ErrNoNode. If it is registered
	// with another token, it matches ErrBadVersion. A name that a session has only
	// that session can give back: the error is a *TakenError.
	//
	// While the last request is on its way, the name may be given up and taken again
	// by another session. Unregister cannot distinguish the two. After an outage it reads
	// again before it deletes: see Configuration.Set. Unknown outcomes are as with
	// RegisterPersistent.
	Unregister(ctx context.Context, name string, token Token) error

	// Lookup returns the registration of a name, or an error that matches ErrNoNode.
	// It costs one read. The answer may be outdated on arrival.
	Lookup(ctx context.Context, name string) (Record, error)

	// List returns all registrations, sorted by name, on the terms of
	// Group.Members. A name whose znode this session may not read is listed without
	// its data: see Record.Unreadable. It costs one more read.
	List(ctx context.Context) ([]Record, error)

	// Watch returns a channel that first gives the registration of a name and then
	// every change. A change is other data, another registration, or a Record that
	// is None when nobody has the name. The terms are those of Group.Watch. Each
	// change costs a read with a watch, and one more where nobody has the name.
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
	// Token is the czxid of the znode. It distinguishes a registration from a later
	// one of the same name.
	Token Token
	// SessionID is the session that has the name, or 0 if it is registered for good.
	SessionID int64
	// Since is when it was registered, by the server's clock.
	Since time.Time
	Data  []byte
	// Unreadable reports that the znode's ACL does not let this session read the data.
	// Only List returns such a record. The other fields are valid.
	Unreadable bool
}

// None reports that nobody has the name.
func (r Record) None() bool { return r.Znode == "" }
