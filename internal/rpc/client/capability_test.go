package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestCohortTravels(t *testing.T) {
	asked := 0
	l := newLink(t, grpc.WithUnaryInterceptor(onInfo(func(*pb.InfoResponse) { asked++ })))
	s := l.open(t, 0)
	for range 3 {
		h, err := lock(t, s, recipes.LockConfig{Cohort: 7}).Acquire(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := l.world.Cohorts("/l"); !slices.Equal(got, []int{7}) {
			t.Errorf("the plugin was asked for cohorts of %v", got)
		}
		if err := h.Release(ctx(t)); err != nil {
			t.Error(err)
		}
	}
	acquire(t, s)
	if asked != 1 {
		t.Errorf("the plugin was asked %d times what it can do", asked)
	}
}

// TestOlderPluginRefusesACohort: it would ignore the field, and form none.
func TestOlderPluginRefusesACohort(t *testing.T) {
	l := newLink(t, grpc.WithUnaryInterceptor(onInfo(func(r *pb.InfoResponse) {
		r.Capabilities = slices.DeleteFunc(r.Capabilities, func(c string) bool { return c == "lock-cohort" })
	})))
	s := l.open(t, 0)
	_, err := lock(t, s, recipes.LockConfig{Cohort: 7}).Acquire(ctx(t))
	if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "lock-cohort") {
		t.Error(err)
	}
	if _, err := lock(t, s, recipes.LockConfig{Cohort: 7}).TryAcquire(ctx(t)); !errors.Is(err, recipes.ErrUnsupported) {
		t.Error(err)
	}
	l.inLine(t, 0)
	acquire(t, s) // without one it does not matter
}

// onInfo sees, and may change, what the plugin says of itself.
func onInfo(see func(*pb.InfoResponse)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := call(ctx, method, req, reply, cc, opts...)
		if r, ok := reply.(*pb.InfoResponse); ok && err == nil {
			see(r)
		}
		return err
	}
}
