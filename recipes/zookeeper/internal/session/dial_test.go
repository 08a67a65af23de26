package session

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A name may be that of the whole ensemble. net.Dialer gave the first of its
// addresses all of the time.
func TestASilentAddressOfANameLeavesTimeForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c, err := dialAny(t.Context(), []string{"silent", "refuses", "serves"}, func(ctx context.Context, address string) (net.Conn, error) {
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
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if took := time.Since(begun); took != nextAddress {
			t.Errorf("it took %v", took)
		}
	})
}

// Each has all of the time, also where there are so many that it could not answer in
// its share. What the slower ones open is closed.
func TestAllAddressesOfANameMayBeFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var mu sync.Mutex
		var others []net.Conn
		c, err := dialAny(ctx, []string{"a", "b", "c", "d", "e", "f", "g"}, func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case <-time.After(600 * time.Millisecond):
			case <-ctx.Done(): // too late: the connection is there
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

func TestANameOfWhichNoAddressAnswersTellsWhatEachMet(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	_, err := dialAny(t.Context(), []string{"a", "b"}, func(_ context.Context, address string) (net.Conn, error) {
		if address == "a" {
			return nil, first
		}
		return nil, second
	})
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Error(err)
	}
}
