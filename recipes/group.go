package recipes

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Group is group membership: who is there now. It is a name and holds no state. Any
// number of goroutines may use it; each Join is another member.
//
// Source: ZooKeeper Recipes, "Out of the Box Applications": "The group is
// represented by a node. Members of the group create ephemeral nodes under the
// group node. Nodes of the members that fail abnormally will be removed
// automatically when ZooKeeper detects the failure."
//
// Every ephemeral child of the path is a member, whatever its name and whatever
// program made it. Other children are ignored. The text does not say what members
// are called. Here they are named _c_<guid>-member-<sequence>, as "Recoverable
// Errors and the GUID" has it for locks, or as the application wishes
// (GroupConfig.Name).
//
// "When ZooKeeper detects the failure" is after the session timeout. Until then a
// dead member is listed, and so is a member that is cut off.
type Group interface {
	// Path is the path the group was made with.
	Path() string

	// Join makes a member of this session, with data that others see, and returns
	// when it is listed. If GroupConfig.Name is taken, the error matches
	// ErrNodeExists and is a *TakenError that says which session has the name. A
	// name that this session already has is taken too.
	//
	// A lost connection is not an error: when it is back, Join finds out whether the
	// request was carried out. After an error the session has no new member. If ctx
	// ends while the connection is down, a member that was made is deleted in the
	// background.
	//
	// Nothing rejoins by itself: a member whose session is lost is gone, and only
	// the application can know whether it should come back.
	Join(ctx context.Context, data []byte) (Membership, error)

	// Members returns who is there, the oldest member first. A group that does not
	// exist is empty. It costs one read for the list and one for each member. It is
	// not a snapshot of one moment: each member is shown as it was when it was read.
	Members(ctx context.Context) ([]Member, error)

	// Watch returns a channel that first gives the present members, and then the
	// whole group again whenever a member has come, gone or changed its data. A slow
	// reader may miss states in between but never the latest.
	//
	// The channel is closed when ctx ends, or when the session is lost (Session.Err
	// tells). It is also closed when a member cannot be read, because of its ACL or
	// its size (SessionConfig.MaxPacket); that is logged. Watch returns an error only
	// if the first look fails.
	//
	// At first a watch costs what Members costs. Each arrival then costs one event,
	// one listing and one read. Each departure costs two events and one listing, and
	// each change of data one event and one read. After a lost connection all is
	// read again.
	Watch(ctx context.Context) (<-chan []Member, error)
}

// GroupConfig says how to join. The zero value is good.
type GroupConfig struct {
	// Name is the member's name in the group: one element of a path. With "" every
	// Join makes a new name. With a name, two processes cannot be the same member,
	// and a process that was restarted cannot join before its former session has
	// ended, at its timeout.
	Name string

	// Dialect says who are members of the same group; "" is DefaultDialect. The default
	// and Curator are the same: any ephemeral child is a member, so also those of
	// Curator's GroupMember, whose id is the name. To the default, members of kazoo's
	// Party are members too, but a Party lists only its own. With Kazoo, members here
	// have names as those of a Party, and see only those. Name must be "" then, and data
	// UTF-8, because a Party fails on anything else.
	Dialect Dialect
}

// Membership is being a member of a group. It is a Grant. Done closes when the
// member is gone: its session was lost, or another client deleted its znode, which
// is always noticed. Write writes only while the member is there.
//
// One case cannot be excluded for a member that the application named. Another
// client deletes its znode, a third one takes the name, and neither has updated its
// data, or both equally often. Until this session has been told of the deletion,
// ZooKeeper has nothing by which to refuse a Write: it compares name and version.
type Membership interface {
	Grant

	// Update replaces the member's data. It returns when others can see them. If the
	// member is gone, the error matches ErrNotHeld.
	//
	// If ctx ends, or the session is lost, after the request was sent, the data may
	// or may not have been replaced. The error then matches ErrUnknownOutcome too.
	// While the session lives, another Update settles it.
	Update(ctx context.Context, data []byte) error

	// Leave removes the member from the group, on the terms of Hold.Release.
	Leave(ctx context.Context) error
}

// Member is one of a group.
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
	// Data are those of Join, or of the latest Update.
	Data []byte
}

// TakenError says which session has the name that was asked for. It matches
// ErrNodeExists.
type TakenError struct {
	Znode string
	// SessionID is the session that has the name, or 0 if the znode is persistent.
	SessionID int64
	// Since is when it was taken, by the server's clock.
	Since time.Time
}

func (e *TakenError) Error() string {
	who := "nobody's session: the znode is persistent"
	if e.SessionID != 0 {
		who = fmt.Sprintf("session %#x", e.SessionID)
	}
	return fmt.Sprintf("%v: %s belongs to %s, since %s", ErrNodeExists, e.Znode, who, e.Since.UTC().Format(time.RFC3339))
}

func (e *TakenError) Unwrap() error { return ErrNodeExists }

// ValidateName reports, as an ErrInvalid, why an application cannot give name to a
// znode. A name is one element of a path, and does not start with _c_, as the
// names do that recipes make.
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
