package recipes

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Group is group membership: which members are alive. It is only a path, without state of its
// own, and is safe for concurrent use. Each Join is another member.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "The group is
// represented by a node. Members of the group create ephemeral nodes under the
// group node. Nodes of the members that fail abnormally will be removed
// automatically when ZooKeeper detects the failure."
//
// Every ephemeral child of the path is a member, whatever its name and its creator. Other
// children are ignored. The text does not specify the names of members. Here the default is
// _c_<guid>-member-<sequence>, after the section "Recoverable Errors and the GUID", which has
// such names for locks. An application can choose another name (GroupConfig.Name).
//
// "When ZooKeeper detects the failure" is after the session timeout. Until then, a member that is
// dead or cut off is listed.
type Group interface {
	// Path is the path of the group.
	Path() string

	// Join creates a member of this session, with data that others can read, and returns when
	// it is listed. If GroupConfig.Name is taken, even by this session, the error matches
	// ErrNodeExists and is a *TakenError that names the session.
	//
	// A lost connection is not an error: after the reconnect, Join finds out whether the
	// request was carried out. After an error the session has no new member. If ctx ends
	// while the connection is down, a created member is deleted in the background.
	//
	// A member whose session is lost does not rejoin: only the application knows whether it
	// should.
	Join(ctx context.Context, data []byte) (Membership, error)

	// Members returns the members, the oldest first. A group that does not exist is empty.
	// It costs one listing, and one read for each member. It is not a snapshot: each member
	// is returned as it was when it was read. A member that this session cannot read is
	// returned without its data: see Member.Unreadable. Such a member costs one more read.
	Members(ctx context.Context) ([]Member, error)

	// Watch returns a channel that first receives the current members, and then the whole
	// group whenever a member has joined, left or changed its data. A slow reader may miss
	// states in between but never the latest.
	//
	// The channel is closed when ctx ends, or when the session is lost (see Session.Err). It
	// is also closed when the members cannot be listed, because of the path's ACL or because
	// there are too many (SessionConfig.MaxPacket); that is logged. Watch returns an error only
	// if the first read fails.
	//
	// A watch first costs as much as Members. Then each new member costs one event, one
	// listing and one read. Each member that leaves costs two events and one listing. Each
	// change of data costs one event and one read. After a lost connection everything is
	// read again. A change of a member that is Unreadable is not noticed; each other change
	// costs two reads of it.
	Watch(ctx context.Context) (<-chan []Member, error)
}

// GroupConfig configures a Group. The zero value is the default.
type GroupConfig struct {
	// Name is the member's name in the group: one element of a path. With "" every Join
	// creates a new name. With a name, only one process is that member, and a restarted
	// process cannot join until its former session has expired.
	Name string

	// Dialect selects the libraries that share the group; "" is ZooKeeper. The default
	// and Curator are the same: any ephemeral child is a member, including those of Curator's
	// GroupMember, whose id is the name. The default also lists members of kazoo's Party, but
	// a Party lists only its own. With Kazoo, members have the names of a Party's members and
	// list only those. Then Name must be "", and data UTF-8, because a Party fails on
	// anything else.
	Dialect Dialect

	// EndsWithProcess ends the membership when this process dies, as
	// ElectionConfig.EndsWithProcess does.
	EndsWithProcess bool
}

// Membership is the grant of a Group. Done closes when its session is lost, or when another
// client deletes its znode, which is always noticed. Write commits only while the member
// exists.
//
// A member with a chosen name has one unsafe case. Another program deletes its znode, a client
// takes the name, and both members have updated their data equally often. Until this session is
// notified of the deletion, ZooKeeper cannot refuse a Write, because it compares only name and
// version. No client of this library deletes a living member of another session.
type Membership interface {
	Grant

	// Update replaces the member's data. It returns when others can read it. If the member
	// no longer exists, the error matches ErrNotHeld.
	//
	// If ctx ends, or the session is lost, after the request was sent, the error also
	// matches ErrUnknownOutcome: the data was replaced or not. While the session lives,
	// another Update resolves that.
	Update(ctx context.Context, data []byte) error

	// Leave removes the member from the group. Its errors are those of Hold.Release.
	Leave(ctx context.Context) error
}

// Member is a member of a group.
type Member struct {
	// Name is the znode's name below the group's path, and Znode its path.
	Name, Znode string
	// Token is the czxid of the znode. It distinguishes a member from a later one of
	// the same name.
	Token Token
	// SessionID is the ZooKeeper session that owns the znode.
	SessionID int64
	// Since is when the member joined, by the server's clock.
	Since time.Time
	// Data is from Join, or from the latest Update.
	Data []byte
	// Unreadable reports that this session cannot read the data: the znode's ACL denies it, or
	// the data is larger than SessionConfig.MaxPacket. If the ACL denies it, servers since
	// ZooKeeper 3.9 report nothing but the name: Token, SessionID and Since are zero, and the
	// znode may be persistent and thus not a member.
	Unreadable bool
}

// TakenError names the session that owns a requested name. It matches ErrNodeExists.
type TakenError struct {
	Znode string
	// SessionID is the session that owns the name, or 0 if the znode is persistent.
	SessionID int64
	// Since is when it was taken, by the server's clock.
	Since time.Time
}

func (e *TakenError) Error() string {
	who := "no session: the znode is persistent"
	if e.SessionID != 0 {
		who = fmt.Sprintf("session %#x", e.SessionID)
	}
	return fmt.Sprintf("%v: %s belongs to %s, since %s", ErrNodeExists, e.Znode, who, e.Since.UTC().Format(time.RFC3339))
}

func (e *TakenError) Unwrap() error { return ErrNodeExists }

// ValidateName reports, as an ErrInvalid, why an application cannot give name to a znode. A
// name is one element of a path, and does not start with _c_, which is reserved for names
// that recipes generate.
func ValidateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrInvalid)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w: name %q has a slash; a name is one element of a path", ErrInvalid, name)
	case strings.HasPrefix(name, "_c_"):
		return fmt.Errorf("%w: name %q starts with _c_, as names do that recipes make", ErrInvalid, name)
	}
	return validateElements("name", name, name)
}

// Names is a name service: a directory of names, each with one owner and data. It is only a
// path, without state of its own, and is safe for concurrent use.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "Name service and
// configuration are two of the primary applications of ZooKeeper. These two
// functions are provided directly by the ZooKeeper API."
//
// A name is the child of the path with that name. Register creates it as an ephemeral znode,
// RegisterPersistent as a persistent one. Children whose names start with _c_ are not names:
// they are the receipts of RegisterPersistent and Unregister, and a count of deletions. The count
// is persistent, so after the first Unregister the servers do not delete the empty directory.
type Names interface {
	// Path is the path of the directory.
	Path() string

	// Register takes the name until this session ends. If the name is taken, even by this
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
	// A name that was unregistered and registered again is another one: the comparison is as
	// exact as that of Configuration.Set, and needs the same permissions. Unknown outcomes are
	// those of RegisterPersistent.
	Unregister(ctx context.Context, name string, token Token) error

	// Lookup returns the registration of a name, or an error that matches ErrNoNode. It
	// costs one read. The answer may be outdated when it arrives.
	Lookup(ctx context.Context, name string) (Record, error)

	// List returns all registrations, sorted by name, as Group.Members does. A name whose
	// znode this session cannot read is listed without its data: see Record.Unreadable.
	// Such a name costs one more read.
	List(ctx context.Context) ([]Record, error)

	// Watch returns a channel that first receives the registration of a name, and then receives
	// every change of it: other data or another registration. While the name is not registered, the
	// Record is None. The channel closes when Group.Watch's would, and also when the name's znode
	// cannot be read. Each change costs a read with a watch, and one more if the name is not
	// registered.
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
	// Unreadable reports that this session cannot read the data: the znode's ACL denies it, or
	// the data is larger than SessionConfig.MaxPacket. Only List returns such a record. If the
	// ACL denies it, servers since ZooKeeper 3.9 report nothing but the name: Token, SessionID
	// and Since are zero.
	Unreadable bool
}

// None reports that the name is not registered.
func (r Record) None() bool { return r.Znode == "" }
