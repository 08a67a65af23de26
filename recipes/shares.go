package recipes

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Shares spreads the numbers from 0 to n-1 over the members of a path, for example the shards of
// a store over its workers. Each number belongs to at most one member at a time, and each share
// has a fencing token and guarded writes. It is only a path and a configuration, without state of
// its own, and is safe for concurrent use. Each Join is another member.
//
// When the members settle, the numbers that two of them own differ by one at most. If there are
// more members than numbers, some own none. As few numbers as possible move when members come and
// go: a member keeps what it owns up to its part. A number that moves is first given up by its
// owner, which has SharesConfig.Grace to finish, and then taken. A member that dies keeps its
// numbers until its session ends. If its children keep the session (host.Config.Lifetime), the
// others are assigned its numbers at once, and take them when the children have ended.
//
// The members settle within Grace plus a few requests of each after the last change. A change
// is that a member has joined, has left, or that its session has ended. If the connection of a
// member is down, its part waits for that member. If an overloaded server throttles a request
// of a member, the member repeats it after a second.
//
// All members must use the same n. While there are members, a Join with another n fails with
// ErrMismatch.
//
// Source: kazoo's SetPartitioner, which waits for all members at a barrier, stops all of them for
// each change, and has no tokens (CURATOR-321 asks for the same). Here only the work for numbers
// that move stops.
//
// # How it works
//
// It consists of other recipes. The members are a Group, PATH/members. One of them, elected at
// PATH/assigner, watches the group and writes the assignment into the data of PATH by a guarded
// write. The other members watch only that. A number belongs to the member that has registered
// it (Names) in PATH/numbers. So no mistake in an assignment can give a number to two members:
// the znode of the number exists once, and its czxid is the token. A member that is assigned
// another member's number watches that znode, until the owner has deleted it.
//
// To join costs 2 writes for the member and the candidate. With m members, a change costs the
// assigner 1 write, and each member one event and one read. A number that moves costs 2 or 3
// writes. The assignment has about 5 bytes for each number and 15 for each member. While nothing
// changes, nothing is sent except pings and the syncs of each session that holds something.
//
// # What it does not guarantee
//
// A share excludes others for as long as a Hold does: see "What a lock is worth". Its token grows
// with each owner of the number; tokens of different numbers cannot be compared.
//
// If another client deletes the znode of a number, another member can own it before the former
// owner is notified. Until then ZooKeeper accepts the guarded writes of both, as for Membership.
type Shares interface {
	// Path is the path of the shares.
	Path() string

	// Join joins as a member and returns when the member has its first assignment, which may
	// be empty. That can take the session timeout of an assigner that has died. The numbers
	// follow in Portion.Changes.
	//
	// A lost connection is not an error. If the members use another n, the error matches
	// ErrMismatch. If ctx ends, or the connection is down, the member leaves in the background.
	// After any other error it has left.
	Join(ctx context.Context) (Portion, error)
}

// SharesConfig configures Shares. The zero value is the default.
type SharesConfig struct {
	// Grace is how long a member may keep a number that it is asked to give up: see
	// Share.Revoked. With 0 it gives the number up at once, while its work may continue for
	// a moment. A number that Portion.Changes has not delivered is given up at once.
	Grace time.Duration

	// Data is stored in the znodes of the member and its numbers. It tells people who the
	// member is.
	Data []byte

	// Warn, if not nil, is called for failures that do not end the member: it is elected and
	// cannot assign, it cannot take a number or wait for one, or it ignores a child of
	// PATH/members. The member tries again, in 1 s after the first failure and in 30 s at most,
	// and calls Warn each time. The calls are made one at a time, and must return soon.
	Warn func(error)
}

// Validate reports, as an ErrInvalid, that n or a field cannot be used.
func (c SharesConfig) Validate(n int) error {
	switch {
	case n < 1 || n > maxShares:
		return fmt.Errorf("%w: n is %d; from 1 to %d", ErrInvalid, n, maxShares)
	case c.Grace < 0:
		return fmt.Errorf("%w: Grace is %v; it must not be negative", ErrInvalid, c.Grace)
	}
	return nil
}

// maxShares bounds n, so that the assignment fits into a znode.
const maxShares = 1 << 16

// Portion is the part of one member of Shares.
type Portion interface {
	// Changes returns a channel that receives the numbers that the member owns, in order. The
	// first value comes when each number of the first assignment is taken, or is found to be
	// another member's. Another value follows after each change, without the shares that were
	// revoked or lost. A slow reader may miss states in between but never the latest. There is
	// one channel, for one reader.
	//
	// When the session is lost, Done closes before a shorter value is sent. The channel is closed
	// when the member has left or was lost, and all its numbers are given up.
	Changes() <-chan []Share

	// Done is closed when the member leaves or was lost. Then all its shares are revoked.
	Done() <-chan struct{}

	// Err is nil until Done is closed. Then it is the reason: ErrReleased after Leave,
	// ErrRemoved if another client has deleted the member's znode, the reason of the session's
	// loss, or why a request was refused. If a number could not be given up, close the session
	// to free it. The library does not join again.
	Err() error

	// Leave leaves: all shares are revoked, as if they moved, and the others take them over.
	// It returns nil when all are given up. If ctx ends first, Leave returns its error, and the
	// rest happens in the background. If the member was lost before, it returns the reason.
	Leave(ctx context.Context) error
}

// Share is the hold of one number. Done closes when it is lost or given up.
//
// Release gives the number up. Without a request to do so (Revoked), the member takes it again,
// with another token, unless another client was faster.
type Share interface {
	Hold

	// Number is the number. It never changes.
	Number() int

	// Revoked is closed when the number moves to another member, or when the member leaves:
	// finish and release. After SharesConfig.Grace the library releases it. Revoked is also
	// closed when the share is lost or released.
	Revoked() <-chan struct{}
}

// NewShares returns the shares of a client at path, made of the client's other recipes. It sends
// nothing, so the error can only be ErrInvalid. Client.Shares calls it, in process and through a
// plugin.
func NewShares(s Client, path string, n int, cfg SharesConfig) (Shares, error) {
	err := cmp.Or(ValidatePath(path), cfg.Validate(n))
	if path == "/" {
		err = fmt.Errorf("%w: the root cannot have shares: it holds ZooKeeper's own nodes", ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("shares: %w", err)
	}
	sh := &shares{session: s, path: path, n: n, cfg: cfg}
	for _, open := range []func() error{
		func() (err error) {
			sh.group, err = s.Group(path+"/members", GroupConfig{EndsWithProcess: true})
			return err
		},
		func() (err error) {
			sh.election, err = s.Election(path+"/assigner", ElectionConfig{EndsWithProcess: true})
			return err
		},
		func() (err error) { sh.numbers, err = s.Names(path + "/numbers"); return err },
		func() (err error) { sh.assigned, err = s.Configuration(path); return err },
	} {
		if err := open(); err != nil {
			return nil, fmt.Errorf("shares %s: %w", path, err)
		}
	}
	return sh, nil
}

// shares has the recipes that Shares consists of.
type shares struct {
	session  Client
	path     string
	n        int
	cfg      SharesConfig
	group    Group
	election Election
	numbers  Names
	assigned Configuration
}

func (s *shares) Path() string { return s.path }

func (s *shares) failed(err error) error { return fmt.Errorf("shares %s: %w", s.path, err) }

func (s *shares) Join(ctx context.Context) (Portion, error) {
	member, err := s.group.Join(ctx, s.memberData())
	if err != nil {
		return nil, s.failed(err)
	}
	p := newPortion(context.WithoutCancel(ctx), s, member)
	select {
	case <-p.named:
		return p, nil
	case <-p.Done():
		select { // the member has left before the error is returned, unless the connection is down
		case <-p.gone:
		case <-ctx.Done():
		}
		return nil, p.Err()
	case <-ctx.Done():
		p.fail(p.explained(ctx.Err()))
		return nil, p.Err()
	}
}

// explained adds the last warning to the error of a Join that has ended without an assignment.
func (p *portion) explained(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, p.trouble)
}
