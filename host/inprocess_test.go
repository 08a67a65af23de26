package host_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
)

func inProcess(t testing.TB) *host.Plugin {
	t.Helper()
	p, err := host.InProcess(new(fake.World).Open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}
