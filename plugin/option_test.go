package plugin

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func TestOptionsReachTheServer(t *testing.T) {
	provider := noop.NewTracerProvider()
	cfg := must.Get(configure(nil, []Option{Limits{Sessions: 9, Grants: 9}, Telemetry{TracerProvider: provider}, Limits{Sessions: 1, Watches: 2, Message: 3}}))(t)
	if want := (server.Limits{Sessions: 1, Grants: server.MaxGrants, Watches: 2, Message: 3}); cfg.Limits != want || cfg.TracerProvider != provider {
		t.Errorf("limits %+v, provider %v", cfg.Limits, cfg.TracerProvider)
	}
}

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	if got, want := must.Get(Limits{}.Normalize())(t), (Limits{Sessions: 16_384, Grants: 65_536, Watches: 16_384, Message: 64 << 20}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

func TestAnInvalidOptionIsRefused(t *testing.T) {
	err := Debug(context.Background(), nil, func(_, _ string) { t.Error("it serves") }, Limits{Watches: -1})
	if err == nil || !strings.Contains(err.Error(), "Watches is -1") {
		t.Errorf("%v", err)
	}
}

func TestNegativeLimitsAreRefused(t *testing.T) {
	for _, l := range []Limits{{Sessions: -1}, {Grants: -1}, {Watches: -1}, {Message: -1}} {
		if _, err := l.Normalize(); err == nil || !strings.Contains(err.Error(), "must be positive") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
