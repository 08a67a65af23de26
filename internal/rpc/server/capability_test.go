package server

import (
	"context"
	"github.com/zkrecipes/zkrecipes/recipes"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// about lists the capabilities for every service. Capabilities that every plugin has are
// omitted.
var about = map[string][]string{
	"zkrecipes.v1.PluginService":        nil,
	"zkrecipes.v1.SessionService":       {"resume", "sasl"},
	"zkrecipes.v1.GrantService":         nil,
	"zkrecipes.v1.CallService":          {"call-connection"},
	"zkrecipes.v1.ContenderService":     {"contenders"},
	"zkrecipes.v1.LockService":          {"lock", "dialects"},
	"zkrecipes.v1.ElectionService":      {"election"},
	"zkrecipes.v1.QueueService":         {"queue", "priority-queue"},
	"zkrecipes.v1.TransactionService":   {"transaction"},
	"zkrecipes.v1.GroupService":         {"group"},
	"zkrecipes.v1.BarrierService":       {"barrier"},
	"zkrecipes.v1.DoubleBarrierService": {"double-barrier"},
	"zkrecipes.v1.NamesService":         {"names"},
	"zkrecipes.v1.ConfigurationService": {"configuration"},
	"zkrecipes.v1.CounterService":       {"counter"},
	"zkrecipes.v1.LatchService":         {"latch"},
	"zkrecipes.v1.ReadWriteLockService": {"shared-lock", "priority-lock"},
	"zkrecipes.v1.SemaphoreService":     {"semaphore", "slots"},
}

// Info must list the capability of every service, because hosts check it before they call.
func TestEveryServiceHasItsCapability(t *testing.T) {
	g := grpc.NewServer()
	s := New(Config{})
	s.Register(g)
	var reported []string
	for name := range g.GetServiceInfo() {
		names, ok := about[name]
		if !ok {
			t.Errorf("%s is new: add its capability", name)
		}
		reported = append(reported, names...)
	}
	have := Config{Resume: func(context.Context, recipes.SessionConfig, []byte, time.Time) (recipes.Client, error) {
		return nil, nil
	}}.Capabilities()
	slices.Sort(reported)
	slices.Sort(have)
	if !slices.Equal(reported, have) {
		t.Errorf("the services have %q, the capabilities are %q", reported, have)
	}
}
