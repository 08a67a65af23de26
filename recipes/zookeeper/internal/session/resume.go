package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// errLetGo is the reason for the end of a session that LetGo ends in this process and not at the
// server.
var errLetGo = fmt.Errorf("%w: let go, so that another process can resume it", recipes.ErrSessionLost)

// Resume resumes the session of a ticket: see "Resuming a session in another process" in the
// package comment. It returns when the server has answered with that session and has caught up
// with all that the session did before. The session keeps its id and deadline.
//
// The caller ensures that no other process serves the session: the process that did has called
// LetGo, or it was killed and waited for. cfg is the configuration of the session's Open. The
// ticket's timeout replaces its SessionTimeout.
//
// An error matches recipes.ErrSessionLost if the session has ended: the server does not know
// the session or its password, or the deadline has passed. On any error nothing was deleted,
// and no session was opened or closed.
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
	s, err := prepare(cfg, dial, t.secret.contact) // so the deadline counts from that contact
	if err != nil {
		return nil, err
	}
	s.wire.Resume(t.secret.id, t.secret.password, t.secret.timeout)
	s.wire.Spare(true)
	s.resumption.paths = make(map[string]bool)
	s.id = t.secret.id
	s.lease.Start(s.end)
	ctx, cancel := openBounded(ctx)
	defer cancel()
	if err = s.Err(); err == nil { // the deadline may have passed
		err = s.connect(ctx)
	}
	if err == nil {
		err = s.Sync(ctx, "/") // the answer also contains the last zxid
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
