package session_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func TestOpenSaysWhatTheLastAttemptMet(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{"127.0.0.1:1"}}, nil) // nobody listens there
	if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	var refused *net.OpError
	if !errors.As(err, &refused) {
		t.Logf("the cause is told in words: %v", err)
	}
}

// go-zookeeper gives a handshake ten times the receive timeout, and its body
// for ever: one frozen server held the client for a minute.
func TestASilentServerDoesNotHoldTheHandshake(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // accepts in the kernel, never answers
	srv := embedded(t)
	for range 8 { // the order of servers is random
		s, err := session.Open(bounded(t), recipes.SessionConfig{
			Servers:        []string{silent.Addr().String(), srv.Addr()},
			ConnectTimeout: 100 * time.Millisecond,
			SessionTimeout: 10 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever stops waiting for Open does not wait for a server that is not reached.
func TestAnAttemptToReachAServerEndsWithOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		silent := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := session.Open(ctx, recipes.SessionConfig{Servers: []string{"192.0.2.1:2181"}, ConnectTimeout: time.Hour}, silent)
		if took := time.Since(began); !errors.Is(err, recipes.ErrUnavailable) || took > time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(time.Minute) // for go-zookeeper, whose Close waits for a second
	})
}

func TestAStrangerIsNotTakenForAServer(t *testing.T) {
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	go func() {
		for {
			c, err := stranger.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = session.Open(ctx, recipes.SessionConfig{Servers: []string{stranger.Addr().String()}}, nil)
	if !errors.Is(err, recipes.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
}
