package recipes

import (
	"context"
	"time"
)

// Names is a name service: a directory of names, each with one owner and data. It is only a
// path, without state of its own, and is safe for concurrent use.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "Name service and
// configuration are two of the primary applications of ZooKeeper. These two
// functions are provided directly by the ZooKeeper API."
//
// A name is the child of the path with that name. Register creates it as an ephemeral znode,
// RegisterPersistent as a persistent one. Children whose names start with _c_ are not names:
// they are the receipts of RegisterPersistent.
type Names interface {
	// Path is the path of the directory.
	Path() string

	// Register takes the name until this session ends. If the name is taken, also by this
	// session, the error matches ErrNodeExists and is a *TakenError that names the owner. A
	// name with a slash, or that starts with _c_, is ErrInvalid.
	//
	// Otherwise it works as Group.Join does. After a lost reply Register finds out whether
	// the name was created. A cancelled call leaves nothing behind. The library does not
	// register again after a loss.
	Register(ctx context.Context, name string, data []byte) (Registration, error)

	// RegisterPersistent takes the name until a client unregisters it. If the name is taken,
	// the error is that of Register.
	//
	// It registers once even if a reply is lost: a receipt shows whether an existing name is
	// from this call. The receipt is an ephemeral child beside the names; a session keeps
	// one. If ctx ends, or the session is lost, after the request was sent, the error
	// matches ErrUnknownOutcome.
	RegisterPersistent(ctx context.Context, name string, data []byte) error

	// Unregister deletes a persistent name of any session. The token is that of the
	// registration (Record.Token), or 0 for any.
	//
	// If the name is not registered, the error matches ErrNoNode. If it has another token,
	// it matches ErrBadVersion. A name of Register can only be unregistered by its session:
	// the error is a *TakenError.
	//
	// If the name is unregistered and registered again while the deletion is in flight,
	// Unregister cannot distinguish the two. After an outage it reads again before it
	// deletes: see Configuration.Set. Unknown outcomes are those of RegisterPersistent.
	Unregister(ctx context.Context, name string, token Token) error

	// Lookup returns the registration of a name, or an error that matches ErrNoNode. It
	// costs one read. The answer may be outdated when it arrives.
	Lookup(ctx context.Context, name string) (Record, error)

	// List returns all registrations, sorted by name, as Group.Members does. A name whose
	// znode this session may not read is listed without its data: see Record.Unreadable.
	// Such a name costs one more read.
	List(ctx context.Context) ([]Record, error)

	// Watch returns a channel that first receives the registration of a name, and then
	// receives every change of it: other data or another registration. While the name is not
	// registered, the Record is None. The channel is closed as that of Group.Watch is. Each
	// change costs a read with a watch, and one more if the name is not registered.
	Watch(ctx context.Context, name string) (<-chan Record, error)
}

// Registration is a name that this session owns. It is a Grant, as a Membership is: Done
// closes when the session is lost or another client deletes the znode.
type Registration interface {
	Grant

	// Name is the name.
	Name() string

	// Update replaces the data, as Membership.Update does.
	Update(ctx context.Context, data []byte) error

	// Unregister deletes the name. Its errors are those of Hold.Release.
	Unregister(ctx context.Context) error
}

// Record is a registered name. The zero Record is None.
type Record struct {
	Name  string
	Znode string
	// Token is the czxid of the znode. It distinguishes a registration from a later
	// one of the same name.
	Token Token
	// SessionID is the session that owns the name, or 0 if it is persistent.
	SessionID int64
	// Since is when it was registered, by the server's clock.
	Since time.Time
	Data  []byte
	// Unreadable reports that the znode's ACL does not let this session read the data.
	// Only List returns such a record. Since ZooKeeper 3.9 the servers then report nothing
	// but the name: Token, SessionID and Since are zero.
	Unreadable bool
}

// None reports that the name is not registered.
func (r Record) None() bool { return r.Znode == "" }
