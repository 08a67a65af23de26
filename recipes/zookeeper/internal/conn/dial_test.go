package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// A name may have the addresses of the whole ensemble. net.Dialer let the first address use all
// of the time.
func TestASilentAddressOfANameLeavesTimeForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c, err := firstOf(t.Context(), []string{"silent", "refuses", "serves"}, nextAddress, true, func(ctx context.Context, address string) (net.Conn, error) {
			switch address {
			case "silent":
				<-ctx.Done()
				return nil, ctx.Err()
			case "refuses":
				return nil, errors.New("refused")
			}
			c, other := net.Pipe()
			return c, other.Close()
		})
		must.Do(t, err)
		_ = c.Close()
		if took := time.Since(begun); took != nextAddress {
			t.Errorf("it took %v", took)
		}
	})
}

// Each address may use the whole time, even if there are so many that a share would be too
// short. Connections that slower attempts open are closed.
func TestAllAddressesOfANameMayBeFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var mu sync.Mutex
		var others []net.Conn
		c, err := firstOf(ctx, []string{"a", "b", "c", "d", "e", "f", "g"}, nextAddress, true, func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case <-time.After(600 * time.Millisecond):
			case <-ctx.Done(): // too late: the connection exists
			}
			mu.Lock()
			defer mu.Unlock()
			c, other := net.Pipe()
			others = append(others, other)
			return c, nil
		})
		if err != nil || ctx.Err() != nil {
			t.Fatal(err, ctx.Err())
		}
		_ = c.Close()
		for _, other := range others {
			if _, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("one of %d connections is left: %v", len(others), err)
			}
		}
	})
}

func TestTheErrorOfANameHasTheErrorOfEachAddress(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	_, err := firstOf(t.Context(), []string{"a", "b"}, nextAddress, true, func(_ context.Context, address string) (net.Conn, error) {
		if address == "a" {
			return nil, first
		}
		return nil, second
	})
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Error(err)
	}
}

// The sessions of one configuration do not all begin with the same server, and each tries
// all of them in turn. Once the gate is closed, Next makes go-zookeeper check whether it was
// closed.
func TestEachSessionTriesServersInItsOwnOrder(t *testing.T) {
	servers := make([]string, 50)
	for i := range servers {
		servers[i] = fmt.Sprint("server-", i)
	}
	cfg := must.Get((recipes.SessionConfig{Servers: servers}).Normalize())(t)
	orders := make(map[string]bool)
	for range 2 {
		w := must.Get(New(Config{SessionConfig: cfg}))(t)
		d := w.dialer
		var order []string
		for range servers {
			server, retry := d.Next()
			if retry {
				t.Error("go-zookeeper would sleep for a second")
			}
			order = append(order, server)
		}
		if again, _ := d.Next(); again != order[0] {
			t.Errorf("after all of them comes %s; the first was %s", again, order[0])
		}
		orders[strings.Join(order, " ")] = true
		slices.Sort(order)
		if order = slices.Compact(order); len(order) != len(servers) || d.Len() != len(servers) {
			t.Errorf("%d of %d servers are tried", len(order), len(servers))
		}
		d.shut()
		if _, retry := d.Next(); !retry {
			t.Error("the gate is closed, and go-zookeeper does not check")
		}
	}
	if len(orders) != 2 || orders[strings.Join(cfg.Servers, " ")] {
		t.Error("sessions try the servers in the same order")
	}
}

// LastError returns the error of the last attempt until a session is established.
func TestTheLastErrorIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		cfg := must.Get((recipes.SessionConfig{Servers: []string{"server"}}).Normalize())(t)
		w := must.Get(New(Config{SessionConfig: cfg, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, refused }}))(t)
		d := w.dialer
		if w.LastError() != nil || w.Current() != nil {
			t.Error("nothing was tried yet")
		}
		begun := time.Now()
		for n := range 3 {
			if _, err := d.Dial("tcp", "server", 0); !errors.Is(err, refused) || !errors.Is(w.LastError(), refused) {
				t.Errorf("attempt %d: %v, reported as %v", n, err, w.LastError())
			}
		}
		least, most := (backoff(1)+backoff(2))/2, backoff(1)+backoff(2)
		if took := time.Since(begun); took < least || took >= most {
			t.Errorf("three attempts took %v; want %v to %v", took, least, most)
		}
		d.established()
		begun = time.Now()
		if w.LastError() != nil {
			t.Error("an established session reports an earlier error")
		}
		d.shut()
		if _, err := d.Dial("tcp", "server", 0); !errors.Is(err, errGateClosed) || w.LastError() != nil {
			t.Errorf("the gate is closed: %v, reported as %v", err, w.LastError())
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the first attempt after a connection took %v", took)
		}
	})
}

// dialing returns the dialer of a session that is established, or not. Its network plays servers by
// name: "hidden" answers nothing, "refuses" refuses, and others accept.
func dialing(t *testing.T, established bool, timeout time.Duration, servers ...string) (d *dialer, dialled func() []string) {
	t.Helper()
	cfg := must.Get((recipes.SessionConfig{Servers: servers, SessionTimeout: timeout}).Normalize())(t)
	var mu sync.Mutex
	var all []string
	l := lease.New(time.Now())
	l.SetTimeout(timeout)
	l.Accepted(time.Now())
	w := must.Get(New(Config{SessionConfig: cfg, Lease: l, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		mu.Lock()
		all = append(all, address)
		mu.Unlock()
		switch {
		case strings.HasPrefix(address, "hidden"):
			<-ctx.Done()
			return nil, ctx.Err()
		case strings.HasPrefix(address, "refuses"):
			return nil, errors.New("refused")
		}
		c, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		return c, nil
	}}))(t)
	if established {
		w.sessionID.Store(1)
	}
	w.dialer.servers = cfg.Servers // in this order
	return w.dialer, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// A server behind a firewall that drops packets took two seconds of a timeout of four, each time.
func TestAHiddenServerLeavesTimeForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, dialled := dialing(t, true, 4*time.Second, "hidden:1", "refuses:1", "serves:1")
		begun := time.Now()
		server, _ := d.Next()
		c := must.Get(d.Dial("tcp", server, 0))(t)
		if took := time.Since(begun); took != nextAddress {
			t.Errorf("it took %v to dial %s", took, dialled())
		}
		_ = c.Close()
		// If it does not answer, the next attempt begins with the one after it.
		if next, _ := d.Next(); next != "hidden:1" {
			t.Errorf("the next attempt is to %s", next)
		}
	})
}

// A failure is not followed by an attempt at once: the backoff would have no effect while an ensemble
// is restarted.
func TestARefusalIsFollowedByTheBackoff(t *testing.T) {
	d, dialled := dialing(t, true, 4*time.Second, "refuses:1", "serves:1")
	if _, err := d.Dial("tcp", "refuses:1", 0); err == nil || len(dialled()) != 1 {
		t.Error(err, dialled())
	}
}

// The pause counts from the beginning of an attempt: one that was not answered has taken enough time.
func TestASilentAttemptIsFollowedByTheNextAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := dialing(t, true, 4*time.Second, "a:1", "b:1")
		d.dials, d.began = 9, time.Now()
		if pause := d.pause(); pause <= 0 || pause > 400*time.Millisecond {
			t.Errorf("after a refusal it waits %v; want a tenth of the timeout at most", pause)
		}
		time.Sleep(time.Second)
		if pause := d.pause(); pause > 0 {
			t.Errorf("after a second without an answer it waits %v", pause)
		}
		time.Sleep(2700 * time.Millisecond)
		d.began = time.Now()
		if pause := d.pause(); pause <= 0 || pause > 25*time.Millisecond {
			t.Errorf("100ms before the deadline it waits %v; want a quarter of that at most", pause)
		}
	})
}

// The server of a hold dies, and the only other name has two addresses, one of which accepts
// connections and answers nothing. A hold survives an outage of 0.45 of its timeout.
func TestASilentAddressOfANameIsNotTriedTwice(t *testing.T) {
	const timeout = 4 * time.Second
	for range 20 { // the first address is random
		synctest.Test(t, func(t *testing.T) {
			d, dialled := dialing(t, true, timeout, "refuses:1", "name:1")
			d.names = &names{life: t.Context(), late: time.Minute, lookup: func(_ context.Context, host string) ([]string, error) {
				if host == "name" {
					return []string{"silent", "works"}, nil
				}
				return []string{host}, nil
			}}
			begun := time.Now()
			for {
				server, _ := d.Next()
				c, err := d.Dial("tcp", server, 0)
				if err != nil {
					continue
				}
				if all := dialled(); all[len(all)-1] == "works:1" {
					_ = c.Close()
					break
				}
				_, err = io.ReadFull(c.(*Conn).Conn, make([]byte, 1))
				d.failed(err)
				_ = c.Close()
			}
			if took := time.Since(begun); took > timeout*45/100 {
				t.Errorf("it took %v to dial %s", took, dialled())
			}
		})
	}
}

// Servers that accept connections and answer nothing leave time for the others as well.
func TestTheFirstAttemptsOfAReconnectAreShort(t *testing.T) {
	three := []string{"a:1", "b:1", "c:1"}
	for _, c := range []struct {
		established bool
		servers     []string
		timeout     time.Duration
		want        []time.Duration
	}{
		{true, three, 4500 * time.Millisecond, []time.Duration{500 * time.Millisecond, time.Second, 1400 * time.Millisecond}},
		{true, three, time.Second, []time.Duration{nextAddress, 350 * time.Millisecond, 175 * time.Millisecond, 87 * time.Millisecond, shortest}},
		{true, three, time.Minute, []time.Duration{2 * time.Second, 2 * time.Second}},
		{true, three[:1], 4500 * time.Millisecond, []time.Duration{1500 * time.Millisecond, 1400 * time.Millisecond}},
		// Nothing is lost yet.
		{false, three, 4500 * time.Millisecond, []time.Duration{2 * time.Second, 2 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := dialing(t, c.established, c.timeout, c.servers...)
			for n, want := range c.want {
				d.dials = 0 // without a backoff
				begun := time.Now()
				made := must.Get(d.connect(t.Context(), "tcp", "a:1"))(t)
				_, err := io.ReadFull(made.Conn, make([]byte, 1))
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				// Half of what remains counts with lease's allowance for the clocks.
				if took := time.Since(begun).Truncate(time.Millisecond); took > want || took < want*9/10 {
					t.Errorf("attempt %d of a session with a timeout of %v waited %v for the handshake; want %v", n, c.timeout, took, want)
				}
				d.failed(err)
				_ = made.Close()
			}
		})
	}
}
