package session

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

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
const ticketFormat = 2

// formatWithIdentity also contains the user and password of the session's identity. A plugin
// that wrote it gave each session an identity of its own. ParseTicket ignores them: bare znodes
// of such a session are deleted without a handoff.
const formatWithIdentity = 1

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
	if format == formatWithIdentity {
		_ = d.String()
		_ = d.String()
		format = ticketFormat
	}
	t.password = append([]byte(nil), t.password...)
	if d.Err != nil || len(d.Bytes) > 0 || format != ticketFormat || !t.valid() {
		return Ticket{}, errTicket
	}
	return Ticket{t}, nil
}

var errTicket = fmt.Errorf("%w: not a session's ticket", recipes.ErrInvalid)

func (t *secret) valid() bool {
	return t != nil && t.id != 0 && len(t.password) == conn.PasswordSize && t.timeout > 0 && t.timeout <= maxTimeout &&
		!t.contact.IsZero()
}

// maxTimeout is the longest timeout in ZooKeeper's protocol.
const maxTimeout = (1<<31 - 1) * time.Millisecond

const redacted = "session ticket"

// Format implements fmt.Formatter.
func (Ticket) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText keeps the ticket's content out of JSON and other text formats.
func (Ticket) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (Ticket) LogValue() slog.Value { return slog.StringValue(redacted) }

// Ticket returns the session's ticket, with the time that Contact returns.
func (s *Session) Ticket() Ticket {
	return Ticket{&secret{id: s.id, password: s.wire.Password(), timeout: s.Timeout(), contact: s.Contact()}}
}
