package session

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// A name may be that of the whole ensemble. net.Dialer gave the first of its
// addresses all of the time.
func TestASilentAddressOfANameLeavesTimeForTheOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c, err := dialAny(ctx, []string{"silent", "refuses", "serves"}, func(ctx context.Context, address string) (net.Conn, error) {
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
