package host_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func inProcess(t testing.TB) *host.Plugin {
	t.Helper()
	p := must.Get(host.InProcess(new(fake.World).Open))(t)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}
