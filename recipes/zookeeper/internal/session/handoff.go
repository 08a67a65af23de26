package session

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Handoff deletes a bare znode in a way that distinguishes a release from any other deletion. One
// transaction sets the data, which only this session may do, and deletes the znode. The change of
// data fires the successor's watch, so the deletion does not.
//
// Handoff repeats the transaction until its outcome is known. If the server refuses the write, it
// deletes the znode like DeleteBare. Sessions share the identity that may write to bare znodes,
// and a znode of another session may have the name. So each transaction is sent on a connection on
// which the znode was read, or a watch would have reported its deletion.
//
// Handoff waits for the first answer until ctx is done, and then continues in the background. The
// channel receives the result.
func (s *Session) Handoff(ctx context.Context, bare BareZnode) <-chan error {
	if !s.bare.latest(bare) {
		return superseded(bare)
	}
	var m conn.Multi
	m.Set(s.full(bare.Path), nil, bare.Stat.Version)
	m.Delete(s.full(bare.Path), bare.Stat.Version+1)
	h := &handoff{exchange{session: s, requests: []conn.Request{m.Request().Identified()}}, bare}
	h.prepare = func(context.Context) error {
		if s.deletionWatched(bare) {
			return nil
		}
		return errUnseen
	}
	h.send(ctx)
	if replies, err := h.await(ctx); err == nil && replies[0].Refusal() == nil {
		done := make(chan error, 1)
		done <- s.bare.deleted(bare, nil)
		return done
	}
	return s.inBackground(func(life context.Context) error { return s.bare.deleted(bare, h.finish(life)) })
}

// errUnseen means that nothing was sent, because the znode may be deleted.
var errUnseen = errors.New("the znode must be read first")

type handoff struct {
	exchange
	bare BareZnode
}

// finish awaits the exchange that send has sent. It returns when the znode is known to be
// deleted, or the session has ended.
func (h *handoff) finish(life context.Context) error {
	s, bare := h.session, h.bare
	h.prepare = func(context.Context) error {
		_, err := s.reread(life, bare.Path, bare.Stat)
		return err
	}
	if h.failed != nil && !conn.Lost(h.failed) { // nothing was sent
		h.send(life)
	}
	return h.deletes(life, bare.Path, conn.Reply.Refusal, func(err error) (bool, error) {
		s.log.Debug("cannot release by a handoff; deleting", "path", bare.Path, "error", err)
		s.CountFallback()
		deletion := s.deleteBare(life, bare)
		if errors.Is(err, recipes.ErrAccessDenied) && deletion == nil && bare.Stat.Czxid > s.resumption.until {
			s.wire.RefuseIdentity() // the session created this znode and may not write to it
		}
		return false, deletion
	})
}
