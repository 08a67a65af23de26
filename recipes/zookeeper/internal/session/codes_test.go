package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A newer server may answer with an unknown code. That is an answer, not a lost connection:
// nothing is sent again, and the error contains the code.
func TestAnErrorThatHasNoName(t *testing.T) {
	const opExists, opMulti, nameless = 3, 14, -9999
	srv, ctx := embedded(t), zktest.Bounded(t)
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
		if operation, ok := errors.AsType[*session.TxnError](err); ok {
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

// No server sends these. If one does, the session does not accept them.
func TestAMalformedAnswer(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	const opExists, opGetData, opSetData, opGetChildren2, opMulti = 3, 4, 5, 12, 14
	var end, deleted, strange, null jute.Encoder
	end.MultiEnd()
	deleted.MultiHeader(2, 0) // one part more than requested
	deleted.MultiHeader(2, 0)
	deleted.MultiEnd()
	strange.MultiHeader(77, 0)
	strange.MultiEnd()
	null.Int32(-1)
	null.Bytes = append(null.Bytes, make([]byte, 68)...) // a record
	commit := func(s *session.Session) error {
		var t session.Txn
		t.Check("/", -1)
		return s.Commit(ctx, t)
	}
	list := func(s *session.Session) error { _, _, err := s.List(ctx, "/"); return err }
	children := func(s *session.Session) error { _, err := s.Children(ctx, "/"); return err }
	for name, test := range map[string]struct {
		op   int32
		body []byte
		ask  func(*session.Session) error
	}{
		"a transaction without a part":  {opMulti, end.Bytes, commit},
		"a transaction of other parts":  {opMulti, deleted.Bytes, commit},
		"an unknown part":               {opMulti, strange.Bytes, commit},
		"a transaction that is cut off": {opMulti, deleted.Bytes[:5], commit},
		"no list of children":           {opGetChildren2, null.Bytes, children},
		"no list of many children":      {opGetChildren2, null.Bytes, list},
		"a list that is cut off":        {opGetChildren2, null.Bytes[4:6], list},
		"a record that is cut off":      {opExists, []byte{1, 2, 3}, func(s *session.Session) error { _, err := s.Stat(ctx, "/"); return err }},
		"data that are cut off":         {opGetData, []byte{0, 0, 0, 9, 1}, func(s *session.Session) error { _, err := s.Get(ctx, "/"); return err }},
		"own data that are cut off":     {opGetData, []byte{0, 0, 0, 9, 1}, func(s *session.Session) error { _, err := s.GetOwn(ctx, "/"); return err }},
		"a new record that is cut off":  {opSetData, []byte{1}, func(s *session.Session) error { _, err := s.SetOnce(ctx, "/", nil, -1); return err }},
	} {
		refusing := newRefuser(t, srv.Addr(), test.op, 0)
		refusing.body = test.body
		s := open(t, recipes.SessionConfig{Servers: []string{refusing.addr}})
		refusing.refuse.Store(true)
		if err := test.ask(s); !errors.Is(err, recipes.ErrInternal) {
			t.Errorf("%s: %v", name, err)
		}
		refusing.refuse.Store(false)
		if err := test.ask(s); err != nil {
			t.Errorf("%s, and then a good one: %v", name, err)
		}
	}
}
