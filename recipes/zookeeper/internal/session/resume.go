package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// errLetGo ends a session that lives on at the server.
var errLetGo = fmt.Errorf("%w: let go, for somebody else to resume", recipes.ErrSessionLost)

// Resume resumes the session of a ticket: see "Moving a session" in the package
// comment. It returns when the server has answered with that session, and has caught
// up with all that the session did before. The session has its id and
// its deadline as before.
//
// The caller makes sure that nobody else serves the session. The process that did has
// let go, or it was killed and waited for. cfg is that of the session's Open, but the
// ticket's timeout takes the place of its SessionTimeout.
//
// An error matches recipes.ErrSessionLost where the session is over: the server does
// not know it (any more), or knows it by another password, or the deadline has passed.
// Whatever the error, nothing was deleted, and no session was opened or closed.
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
	cfg.SessionTimeout = t.secret.timeout
	s, err := prepare(cfg, dial, t.secret.contact) // so the deadline counts from there
	if err != nil {
		return nil, err
	}
	s.useTicket(t.secret)
	ctx, cancel := openBounded(ctx)
	defer cancel()
	if err = s.Err(); err == nil { // the deadline may have passed
		err = s.connect(ctx)
	}
	if err == nil {
		err = s.Sync(ctx, "/") // the answer tells the last transaction, too
	}
	if err == nil {
		s.resumption.until = s.wire.LastZxid()
		s.wire.Spare(false)
		err = s.BeginHold(ctx) // what the session held, until DropRest
	}
	if err != nil {
		_, _ = s.LetGo(ctx)
		return nil, err
	}
	return s, nil
}

// useTicket has the session be the ticket's. Nothing was sent yet.
func (s *Session) useTicket(t *secret) {
	s.wire.Resume(t.id, t.password, t.timeout)
	s.wire.Spare(true)
	s.resumption.paths = make(map[string]bool)
	s.id = t.id
	s.lease.Start(s.end)
}

// LetGo ends the session here, as Close does, but not at the server: Resume can take
// it up with the ticket. It returns when nothing of the session is sent any more.
// What had been sent and was not answered may have happened.
//
// If the session is over, the error is its reason, and there is no ticket.
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
