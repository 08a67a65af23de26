package wire_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestNothingOfAQueueOrATransactionIsLostOnTheWire(t *testing.T) {
	cfg := recipes.QueueConfig{Ephemeral: true, Capacity: 3, MaxDeliveries: 4, Dialect: recipes.Kazoo}
	element := recipes.Element{ID: "queue-0000000001", Priority: 7, Data: []byte("x"), Put: time.Unix(1700000000, 5).In(time.Local)}
	decision := recipes.Decision{Commit: true, Reason: "all did"}
	site := recipes.SiteStatus{Name: "a", Vote: recipes.VoteAbort, Joined: true, Dead: true, Done: true}
	status := recipes.TransactionStatus{
		Variant: recipes.OwnNodes, Payload: []byte("p"), Sites: []recipes.SiteStatus{site}, Decision: &decision, Coordinated: true,
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"queue", queueConfig(t, wire.ToQueue("/q", true, cfg)), cfg},
		{"element", wire.Elements(wire.ToElements([]recipes.Element{element}))[0], element},
		{"decision", wire.Decision(wire.ToDecision(&decision)), decision},
		{"site", wire.TransactionStatus(wire.ToTransactionStatus(status)).Sites[0], site},
		{"transaction", wire.TransactionStatus(wire.ToTransactionStatus(status)), status},
	} {
		t.Run(c.name, func(t *testing.T) {
			complete(t, c.got, c.want)
		})
	}
	if q := wire.ToQueue("/q", true, cfg); q.GetPath() != "/q" || !q.GetPriority() {
		t.Errorf("queue %v", q)
	}
	if d := wire.TransactionStatus(&pb.GetTransactionResponse{}).Decision; d != nil {
		t.Errorf("no decision became %+v", d)
	}
}

// A plugin that returns fewer ids than elements does not break its host.
func TestElementIDsAreAsManyAsElements(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b"}, {"a", "b", "c"}} {
		if got := wire.ElementIDs(names, 2); len(got) != 2 {
			t.Errorf("%q became %q", names, got)
		}
	}
}

func queueConfig(t *testing.T, q *pb.QueueRef) recipes.QueueConfig {
	t.Helper()
	cfg, err := wire.QueueConfig(q)
	if err != nil {
		t.Error(err)
	}
	return cfg
}
