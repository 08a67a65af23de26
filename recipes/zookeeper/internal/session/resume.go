package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// errLetGo is the reason for the end of a session that LetGo ends in this process and not at the
// server.
var errLetGo = fmt.Errorf("%w: let go, so that another process can resume it", recipes.ErrSessionLost)

// Resume resumes the session of a ticket: see "Resuming a session in another process" in the
// package comment. It returns when the server has answered with that session and has caught up
// with all that the session did and saw before. The session keeps its id and deadline.
//
// The caller ensures that no other process serves the session: the process that did has called
// LetGo, or it was killed and waited for. cfg is the configuration of the session's Open. The
// ticket's timeout replaces its SessionTimeout.
//
// An error matches recipes.ErrSessionLost if the session has ended: the server does not know
// the session or its password, or the deadline has passed. It matches recipes.ErrUnsupported if the
// session is one of ClickHouse Keeper. On any error nothing was deleted, and no session was opened or
// closed.
func Resume(ctx context.Context, cfg recipes.SessionConfig, dial DialFunc, t Ticket) (*Session, error) {
	s, err := resume(ctx, cfg, dial, t)
	if err != nil {
		return nil, fmt.Errorf("resume session: %w", err)
	}
	return s, nil
}

func resume(ctx context.Context, cfg recipes.SessionConfig, dial DialFunc, t Ticket) (*Session, error) {
	if !t.secret.valid() {
		return nil, errTicket
	}
	if conn.IsKeeper(t.secret.id, t.secret.password) { // a handshake would open another session
		return nil, errKeeperSession
	}
	cfg.SessionTimeout = t.secret.timeout
	s, err := prepare(cfg, dial, t.secret.contact) // so the deadline counts from that contact
	if err != nil {
		return nil, err
	}
	s.wire.Resume(t.secret.id, t.secret.password, t.secret.timeout)
	s.wire.Spare(true)
	s.resumption.paths = make(map[string]bool)
	s.ephemerals.bytes = s.wire.MaxPacket // unknown; the first creation counts
	s.id = t.secret.id
	s.begin()
	ctx, cancel := openBounded(ctx)
	defer cancel()
	if err = s.Err(); err == nil { // the deadline may have passed
		err = s.connect(ctx)
	}
	if err == nil {
		s.resumption.until = s.wire.LastZxid()
		s.wire.Spare(false)
		err = s.BeginHold(ctx) // for what the session held; DropRest ends it
	}
	if err != nil {
		_, _ = s.LetGo(ctx)
		return nil, err
	}
	return s, nil
}

// LetGo ends the session in this process, like Close, but not at the server: Resume can resume it
// with the ticket. LetGo returns when no more requests of the session are sent. Requests that were sent
// and not answered may have happened.
//
// If the session has already ended, LetGo returns the reason and no ticket.
func (s *Session) LetGo(ctx context.Context) (Ticket, error) {
	t := s.Ticket()
	s.end(errLetGo)
	defer context.AfterFunc(ctx, s.giveUp)()
	<-s.shutdown
	if err := s.Err(); !errors.Is(err, errLetGo) {
		return Ticket{}, err
	}
	return t, nil
}

// Ticket is the credential with which Resume resumes a session. A process that has it can act
// as the session, so it is a secret. It prints as "session ticket", with every verb and as
// JSON. Only Bytes reveals its content. The zero value belongs to no session.
type Ticket struct{ secret *secret }

// secret is behind a pointer, which packages that print structs do not follow.
type secret struct {
	id       int64
	password []byte
	timeout  time.Duration // negotiated
	contact  time.Time     // from which the deadline counts
}

// ticketFormat is the first number in Bytes. Each other format has another number.
const ticketFormat = 1

// maxTicket limits the size of a ticket, in bytes.
const maxTicket = 1 << 10

// Bytes encodes the ticket for ParseTicket, which may run in another process. The contact is
// not included, because clocks of processes cannot be compared.
func (t Ticket) Bytes() []byte {
	if t.secret == nil {
		return nil
	}
	var e jute.Encoder
	e.Int32(ticketFormat)
	e.Int64(t.secret.id)
	e.Buffer(t.secret.password)
	e.Int64(int64(t.secret.timeout))
	return e.Bytes
}

// ParseTicket decodes the result of Bytes. contact is the time from which the session's
// deadline counts: see Session.Contact. An earlier time is safe, a later one is not. An error
// matches recipes.ErrInvalid and reveals nothing of b.
func ParseTicket(b []byte, contact time.Time) (Ticket, error) {
	if len(b) > maxTicket {
		return Ticket{}, errTicket
	}
	d := jute.Decoder{Bytes: b}
	format := d.Int32()
	t := &secret{id: d.Int64(), password: d.Buffer(), timeout: time.Duration(d.Int64()), contact: contact}
	t.password = append([]byte(nil), t.password...)
	if d.Err != nil || len(d.Bytes) > 0 || format != ticketFormat || !t.valid() {
		return Ticket{}, errTicket
	}
	return Ticket{t}, nil
}

var errTicket = fmt.Errorf("%w: not a session's ticket", recipes.ErrInvalid)

func (t *secret) valid() bool {
	return t != nil && t.id != 0 && len(t.password) == conn.PasswordSize && t.timeout >= minTimeout && t.timeout <= maxTimeout &&
		!t.contact.IsZero()
}

// The shortest and the longest timeout in ZooKeeper's protocol.
const (
	minTimeout = time.Millisecond
	maxTimeout = (1<<31 - 1) * time.Millisecond
)

const redacted = "session ticket"

func (Ticket) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText keeps the ticket's content out of JSON and other text formats.
func (Ticket) MarshalText() ([]byte, error) { return []byte(redacted), nil }

func (Ticket) LogValue() slog.Value { return slog.StringValue(redacted) }

// Ticket returns the session's ticket, with the time that Contact returns.
func (s *Session) Ticket() Ticket {
	return Ticket{&secret{id: s.id, password: s.wire.Password(), timeout: s.Timeout(), contact: s.Contact()}}
}

// resumption is the state of a resumed session from before Resume.
type resumption struct {
	mu    sync.Mutex
	paths map[string]bool // of znodes that were resumed; nil if the session was not resumed
	late  bool            // DropRest was called
	until int64           // the last transaction before Resume

	dropping sync.Mutex // held while DropRest runs
	listed   bool       // rest holds what the first DropRest has listed
	rest     []string
	dropped  bool
}

// ResumeZnode marks a znode as resumed, as MarkResumed does. stat is what the caller has read of it.
// If the znode belongs to another session, or created is not 0 and another transaction has created
// the znode, the error matches recipes.ErrRemoved. A second call returns recipes.ErrInvalid. After
// an error nothing has changed.
//
// This is all that a grant needs whose znode exists only while it is held. A recipe whose znode can
// also wait proves first that it holds.
func (s *Session) ResumeZnode(path string, stat Stat, created recipes.Token) error {
	switch {
	case stat.EphemeralOwner != s.id:
		return fmt.Errorf("resume: %w: %s belongs to another session", recipes.ErrRemoved, path)
	case created != 0 && recipes.Token(stat.Czxid) != created:
		return fmt.Errorf("resume: %w: %s was created again: its token is %d, not %d", recipes.ErrRemoved, path, stat.Czxid, created)
	case !s.MarkResumed(path):
		return fmt.Errorf("resume: %w: %s cannot be resumed now, or is already resumed", recipes.ErrInvalid, path)
	}
	return nil
}

// MarkResumed marks a znode from before Resume as resumed, so that DropRest does not delete it.
// It returns false if the znode is already marked, or DropRest was called: no two callers may
// get the same znode.
func (s *Session) MarkResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	if s.resumption.paths == nil || s.resumption.late || s.resumption.paths[path] {
		return false
	}
	s.resumption.paths[path] = true
	return true
}

// WasResumed reports whether MarkResumed has marked the path.
func (s *Session) WasResumed(path string) bool {
	s.resumption.mu.Lock()
	defer s.resumption.mu.Unlock()
	return s.resumption.paths[path]
}

// ResumeBare resumes a bare znode from before Resume.
func (s *Session) ResumeBare(bare BareZnode) { s.bare.made(bare, watchKey{}, nil) }

// DropRest deletes the session's znodes from before Resume that were not resumed: contenders
// unknown to their callers, receipts, guards. It does not delete znodes that the session has
// created after Resume: a resumed waiter may have been granted by such a znode. DropRest returns
// when the rest is known to be deleted. If it fails it can be called again, and deletes what
// the first call has listed. Until it succeeds, the session counts as holding something.
//
// spare reports whether the znode at a path stays although it was not resumed.
//
// DropRest needs ZooKeeper 3.6, which can list a session's ephemeral znodes.
func (s *Session) DropRest(ctx context.Context, spare func(path string) bool) error {
	s.resumption.dropping.Lock()
	defer s.resumption.dropping.Unlock()
	s.resumption.mu.Lock()
	resumed := s.resumption.paths != nil
	s.resumption.late = true
	s.resumption.mu.Unlock()
	if !resumed {
		return fmt.Errorf("%w: the session was not resumed", recipes.ErrInvalid)
	}
	if !s.resumption.listed {
		all, err := s.listEphemerals(ctx, "/")
		if err != nil {
			return err
		}
		s.resumption.rest, s.resumption.listed = slices.DeleteFunc(all, func(path string) bool { return s.WasResumed(path) || spare(path) }), true
	}
	var deletions []<-chan error
	for _, path := range s.resumption.rest {
		stat, err := s.Stat(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) || err == nil && stat.Czxid > s.resumption.until {
			continue // the listed znode is deleted, even if another one has its name
		}
		if err != nil {
			return err
		}
		deletions = append(deletions, s.DeleteOwned(path, stat, nil))
	}
	for _, done := range deletions {
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("delete what was left: %w", ctx.Err())
		}
	}
	s.resumption.rest = nil
	if !s.resumption.dropped {
		s.resumption.dropped = true
		s.EndHold()
	}
	return nil
}

// listEphemerals lists the session's ephemeral znodes below dir.
func (s *Session) listEphemerals(ctx context.Context, dir string) ([]string, error) {
	if err := s.Continues(); err != nil {
		return nil, err
	}
	full, err := ask(ctx, s, "list the ephemeral znodes of", dir, conn.Ephemerals(s.full(dir)), conn.Reply.Paths)
	if errors.Is(err, conn.Unimplemented) {
		err = fmt.Errorf("resuming a session needs ZooKeeper 3.6 or later: %w", err)
	}
	paths := make([]string, 0, len(full))
	prefix := strings.TrimSuffix(s.wire.Chroot+dir, "/") + "/"
	for _, path := range full {
		if strings.HasPrefix(path, prefix) { // the server also matches /ab for the prefix /a
			paths = append(paths, s.local(path))
		}
	}
	return paths, err
}
