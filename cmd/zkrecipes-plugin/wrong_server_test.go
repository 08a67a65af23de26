package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// grantsNoTime returns the address of a server that grants each session a timeout of 0.
func grantsNoTime(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { must.Report(t, l.Close()) })
	serve := func(c net.Conn) {
		defer c.Close()
		var length [4]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(length[:]))); err != nil {
			return
		}
		answer := []byte{0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 16}
		_, _ = c.Write(append(answer, make([]byte, 16)...))
		_, _ = io.Copy(io.Discard, c)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// One wrong server once ended the plugin, and so all sessions of the host, even those at other
// servers.
func TestAWrongServerCostsOnlyItsAttempts(t *testing.T) {
	s := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer s.Close()
	wrong := grantsNoTime(t)
	p := must.Get(host.Launch(t.Context(), host.Config{Path: os.Args[0], Env: []string{mainEnv + "=1"}, StartTimeout: watchdog.Patience}))(t)
	defer p.Close(t.Context())
	good := must.Get(p.Open(watchdog.Bounded(t), recipes.SessionConfig{Servers: []string{s.Addr()}}))(t)
	hold := must.Get(must.Get(good.Lock("/a", recipes.LockConfig{}))(t).Acquire(watchdog.Bounded(t)))(t)

	for patience := time.Second; ; patience *= 2 { // until the first attempt has ended
		ctx, cancel := context.WithTimeout(watchdog.Bounded(t), patience)
		_, err := p.Open(ctx, recipes.SessionConfig{Servers: []string{wrong}})
		cancel()
		if !errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrPluginLost) {
			t.Fatalf("a session at the wrong server: %v", err)
		}
		if strings.Contains(err.Error(), wrong) && strings.Contains(err.Error(), "timeout 0 ms") {
			break
		}
		if patience > watchdog.Patience {
			t.Fatalf("the error does not say which server answered what: %v", err)
		}
	}
	both := must.Get(p.Open(watchdog.Bounded(t), recipes.SessionConfig{Servers: []string{wrong, s.Addr()}}))(t)
	must.Do(t, both.Close(watchdog.Bounded(t)))
	must.Do(t, hold.Write(watchdog.Bounded(t)))
	if hold.Err() != nil || good.Err() != nil {
		t.Errorf("the other session: %v, %v", good.Err(), hold.Err())
	}
}
