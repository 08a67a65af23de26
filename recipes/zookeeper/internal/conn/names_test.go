package conn

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// resolver plays the system's resolver, whose first name server may be silent.
type resolver struct {
	silent time.Duration
	found  []string
	err    error
	asked  atomic.Int32
}

func (r *resolver) lookup(ctx context.Context, _ string) ([]string, error) {
	r.asked.Add(1)
	select {
	case <-time.After(r.silent):
		return r.found, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The first name server is dead, and the system waits five seconds before it asks the next one.
// Two seconds were the limit for look-up, connection and handshake together, so no session was
// ever opened.
func TestALookUpHasATimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []error
		dns := &resolver{silent: 5 * time.Second, found: []string{"10.0.0.1"}}
		n := &names{lookup: dns.lookup, life: t.Context(), late: 2 * time.Second, waits: func(err error) { waits = append(waits, err) }}
		found := must.Get(n.resolve(t.Context(), "zk1:2181"))(t)
		if !slices.Equal(found, []string{"10.0.0.1:2181"}) {
			t.Error(found)
		}
		if len(waits) != 1 || !strings.Contains(waits[0].Error(), "DNS: the name zk1 is not resolved after 2s") {
			t.Error(waits)
		}
		// A session that has lost its connection uses the addresses found before, and the new
		// ones once the look-up has ended. Attempts share the look-up.
		dns.found = []string{"10.0.0.2"}
		begun := time.Now()
		for range 3 {
			if found = must.Get(n.resolve(t.Context(), "zk1:2181"))(t); !slices.Equal(found, []string{"10.0.0.1:2181"}) {
				t.Error(found)
			}
		}
		if took := time.Since(begun); took != 3*nextAddress || dns.asked.Load() != 2 {
			t.Errorf("three attempts waited %v, for %d look-ups", took, dns.asked.Load()-1)
		}
		time.Sleep(dns.silent)
		synctest.Wait()
		dns.silent = 0
		if found = must.Get(n.resolve(t.Context(), "zk1:2181"))(t); !slices.Equal(found, []string{"10.0.0.2:2181"}) {
			t.Error(found)
		}
	})
}

func TestAddressesFoundLastAreUsedWhileDNSFails(t *testing.T) {
	dns := &resolver{found: []string{"10.0.0.1"}}
	n := &names{lookup: dns.lookup, life: t.Context(), late: time.Minute}
	must.Get(n.resolve(t.Context(), "zk1:1"))(t)
	dns.err = &net.DNSError{Err: "server misbehaving", Name: "zk1", IsTemporary: true}
	if found := must.Get(n.resolve(t.Context(), "zk1:1"))(t); !slices.Equal(found, []string{"10.0.0.1:1"}) {
		t.Error(found)
	}
	// The name no longer exists: another host may have its address.
	dns.err = &net.DNSError{Err: "no such host", Name: "zk1", IsNotFound: true}
	if found, err := n.resolve(t.Context(), "zk1:1"); !errors.Is(err, dns.err) || !strings.HasPrefix(err.Error(), "DNS: ") {
		t.Error(found, err)
	}
}

func TestAddressesAreNotLookedUp(t *testing.T) {
	n := &names{}
	for _, server := range []string{"127.0.0.1:2181", "[::1]:2181", "[fe80::1%lo]:2181"} {
		if found := must.Get(n.resolve(t.Context(), server))(t); !slices.Equal(found, []string{server}) {
			t.Errorf("%s: %s", server, found)
		}
	}
}

func TestALookUpEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		n := &names{lookup: (&resolver{silent: time.Hour}).lookup, life: life, late: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.resolve(ctx, "zk1:1"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the name zk1 was not resolved") {
			t.Error(err)
		}
		end() // the session has ended
	})
}
