//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func zooKeeper(t *testing.T) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// state is all that servers have: sessions, znodes and what is known of them.
func state(servers ...*zkserver.Server) (all []string) {
	for i, s := range servers {
		all = append(all, fmt.Sprintf("server %d has sessions %#x", i, s.Sessions()))
		for _, n := range s.Tree() {
			all = append(all, fmt.Sprintf("server %d has %+v", i, n))
		}
	}
	return all
}

// unchanged compares the state with that of before.
func unchanged(t *testing.T, after string, before, now []string) {
	t.Helper()
	for _, n := range before {
		if !slices.Contains(now, n) {
			t.Errorf("after %s there is no more: %s", after, n)
		}
	}
	for _, n := range now {
		if !slices.Contains(before, n) {
			t.Errorf("after %s there is: %s", after, n)
		}
	}
}

// Where a ticket has the session's id, its password and its timeout.
const (
	idAt       = 4
	passwordAt = idAt + 8 + 4
	timeoutAt  = passwordAt + 16
)

// A plugin process refuses a ticket that is not of its servers. The servers stay as they
// are, and the session is resumed with its own ticket after that.
func TestAPluginResumesOnlyByATicketOfItsServers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	here, there := zooKeeper(t), zooKeeper(t)
	first := launchReal(ctx, t)
	expired, foreign := first.beside(), first.beside()
	first.serve(ctx, []string{here.Addr()}, nil)
	expired.serve(ctx, []string{here.Addr()}, nil)
	foreign.serve(ctx, []string{there.Addr()}, nil)
	held := make(map[*tenure]*pb.Grant)
	for _, n := range []*tenure{first, expired, foreign} {
		held[n] = n.granted(n.lock(ctx, "/"+n.opened.GetSession()), "it", nil)
	}
	first.reap()
	own, old, other := first.resumption(), expired.resumption(), foreign.resumption()
	if !here.ExpireSession(expired.opened.GetSessionId()) {
		t.Fatal("no session to expire")
	}
	second := launchReal(ctx, t)
	before := state(here, there)

	forged := func(forge func(ticket []byte) []byte) *pb.Resume {
		r := proto.CloneOf(own)
		r.Ticket = forge(r.Ticket)
		return r
	}
	flipped := func(at int) *pb.Resume {
		return forged(func(t []byte) []byte { t[at] ^= 1; return t })
	}
	late := proto.CloneOf(own)
	late.KnownContactAge = first.opened.GetTimeout()
	for _, bad := range []struct {
		name    string
		resume  *pb.Resume
		servers *zkserver.Server
		want    error
	}{
		{"no ticket", forged(func([]byte) []byte { return nil }), here, recipes.ErrInvalid},
		{"a part of the ticket", forged(func(t []byte) []byte { return t[:len(t)-1] }), here, recipes.ErrInvalid},
		{"a longer ticket", forged(func(t []byte) []byte { return append(t, 0) }), here, recipes.ErrInvalid},
		{"another format", flipped(0), here, recipes.ErrInvalid},
		{"a longer password", flipped(passwordAt - 1), here, recipes.ErrInvalid},
		{"no timeout", forged(func(t []byte) []byte { clear(t[timeoutAt : timeoutAt+8]); return t }), here, recipes.ErrInvalid},
		{"another id", flipped(idAt + 7), here, recipes.ErrExpired},
		{"another password", flipped(passwordAt), here, recipes.ErrExpired},
		{"no password", forged(func(t []byte) []byte { clear(t[passwordAt:timeoutAt]); return t }), here, recipes.ErrExpired},
		{"the password of another session", forged(func(t []byte) []byte {
			copy(t[passwordAt:timeoutAt], other.Ticket[passwordAt:timeoutAt])
			return t
		}), here, recipes.ErrExpired},
		{"the ticket of other servers' session", other, here, recipes.ErrExpired},
		{"the ticket, at other servers", own, there, recipes.ErrExpired},
		{"the ticket of a session that has expired", old, here, recipes.ErrExpired},
		{"the ticket, after the deadline", late, here, recipes.ErrDeadline},
		{"no contact", &pb.Resume{Ticket: own.Ticket, Session: own.Session}, here, recipes.ErrInvalid},
	} {
		err := second.beside().open([]string{bad.servers.Addr()}, bad.resume)
		if !errors.Is(err, bad.want) || errors.Is(err, recipes.ErrSessionLost) != errors.Is(bad.want, recipes.ErrSessionLost) {
			t.Errorf("%s: %v", bad.name, err)
		}
		refused := second.beside()
		refused.opened = &pb.Opened{Session: bad.resume.GetSession()}
		if _, err := refused.lock(ctx, "/"+own.GetSession())("it", held[first]); !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: a session of that name: %v", bad.name, err)
		}
		unchanged(t, bad.name, before, state(here, there))
	}

	for n, at := range map[*tenure]*zkserver.Server{first: here, foreign: there} {
		now := second.beside()
		now.serve(ctx, []string{at.Addr()}, n.resumption())
		now.granted(now.lock(ctx, "/"+n.opened.GetSession()), "it", held[n])
		now.dropRest(ctx)
		now.useAndRelease(ctx, "it")
	}
}
