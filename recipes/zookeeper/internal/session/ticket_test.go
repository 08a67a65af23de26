package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// ParseTicket accepts tickets up to its limits and not above.
func TestTheBoundsOfATicket(t *testing.T) {
	good := secret{id: 1, password: make([]byte, conn.PasswordSize), timeout: maxTimeout, contact: time.Now()}
	for name, change := range map[string]func(*secret){
		"no id":              func(t *secret) { t.id = 0 },
		"a short password":   func(t *secret) { t.password = t.password[1:] },
		"no timeout":         func(t *secret) { t.timeout = 0 },
		"a negative timeout": func(t *secret) { t.timeout = -1 },
		"a timeout too long": func(t *secret) { t.timeout++ },
		"no contact":         func(t *secret) { t.contact = time.Time{} },
	} {
		bad := good
		change(&bad)
		if bad.valid() {
			t.Errorf("%s is valid", name)
		}
		if _, err := ParseTicket(Ticket{&bad}.Bytes(), bad.contact); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !good.valid() || (*secret)(nil).valid() {
		t.Error("the limits of a ticket are wrong")
	}
	b := Ticket{&good}.Bytes()
	for _, bad := range [][]byte{nil, b[:len(b)-1], append(b[:len(b):len(b)], 0), append([]byte{9}, b[1:]...)} {
		if _, err := ParseTicket(bad, good.contact); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// A ticket shares no bytes with the encoding that it was parsed from, and prints as "session
// ticket".
func TestATicketOwnsItsBytes(t *testing.T) {
	good := secret{id: 1, password: []byte("0123456789abcdef"), timeout: time.Second, contact: time.Now()}
	b := Ticket{&good}.Bytes()
	ticket := must.Get(ParseTicket(b, good.contact))(t)
	clear(b)
	if !bytes.Equal(ticket.Bytes(), Ticket{&good}.Bytes()) {
		t.Error("the ticket has changed with the bytes that it was parsed from")
	}
	asJSON := must.Get(json.Marshal(ticket))(t)
	if text := fmt.Sprintf("%v %#x %v %s", ticket, ticket, []any{&ticket}, asJSON); strings.ReplaceAll(text, redacted, "") != `  [] ""` {
		t.Errorf("the ticket prints as %q", text)
	}
}

// An earlier version of the plugin wrote the session's identity into its ticket. Such a session
// is resumed without that identity.
func TestATicketWithAnIdentityIsRead(t *testing.T) {
	good := Ticket{&secret{id: 1, password: []byte("0123456789abcdef"), timeout: time.Second, contact: time.Now()}}
	e := jute.Encoder{Bytes: append([]byte{0, 0, 0, formatWithIdentity}, good.Bytes()[4:]...)}
	e.String("zkrecipes-ABC")
	if _, err := ParseTicket(e.Bytes, time.Now()); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("half an identity: %v", err)
	}
	e.String("secret")
	read, err := ParseTicket(e.Bytes, time.Now())
	if err != nil || !bytes.Equal(read.Bytes(), good.Bytes()) {
		t.Errorf("%q, %v; want %q", read.Bytes(), err, good.Bytes())
	}
	e = jute.Encoder{Bytes: append([]byte{0, 0, 0, formatWithIdentity}, good.Bytes()[4:]...)}
	e.String("zkrecipes-ABC")
	e.String(strings.Repeat("s", maxTicket))
	if _, err := ParseTicket(e.Bytes, time.Now()); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("an identity that is too long: %v", err)
	}
}
