package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A newer server may answer with an error that nobody has a name for. That is an answer,
// and not a lost connection: nothing is sent again, and the code is told.
func TestAnErrorThatHasNoName(t *testing.T) {
	const opExists, opMulti, nameless = 3, 14, -9999
	srv, ctx := embedded(t), bounded(t)
	var part jute.Encoder
	part.MultiHeader(-1, nameless)
	part.Int32(nameless)
	part.MultiEnd()
	commit := func(s *session.Session) error {
		var t session.Txn
		t.Check("/", -1)
		return s.Commit(ctx, t)
	}
	for name, test := range map[string]struct {
		op      int32
		body    []byte
		ask     func(*session.Session) error
		refused int // the operation, or -1
		sent    string
	}{
		"to a read":                {opExists, nil, func(s *session.Session) error { _, err := s.Stat(ctx, "/"); return err }, -1, "exists"},
		"to a transaction":         {opMulti, nil, commit, -1, "multi"},
		"to one of its operations": {opMulti, part.Bytes, commit, 0, "multi"},
	} {
		refusing := newRefuser(t, srv.Addr(), test.op, nameless)
		refusing.body = test.body
		s := open(t, recipes.SessionConfig{Servers: []string{refusing.addr}})
		refusing.refuse.Store(true)
		err := test.ask(s)
		if !errors.Is(err, recipes.ErrInternal) || errors.Is(err, recipes.ErrUnknownOutcome) || !strings.Contains(err.Error(), "-9999") {
			t.Errorf("%s: %v", name, err)
		}
		var operation *session.TxnError
		if errors.As(err, &operation) {
			if operation.Index != test.refused {
				t.Errorf("%s: operation %d was refused", name, operation.Index)
			}
		} else if test.refused >= 0 {
			t.Errorf("%s: no operation was refused: %v", name, err)
		}
		refusing.refuse.Store(false)
		if err := test.ask(s); err != nil {
			t.Errorf("%s, and then none: %v", name, err)
		}
		if stats := s.Counters(); stats.ByKind[test.sent] != 2 || stats.Reconnects != 0 {
			t.Errorf("%s: %d requests, %d more connections; want 2 and none", name, stats.ByKind[test.sent], stats.Reconnects)
		}
	}
}
