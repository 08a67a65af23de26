package znode

import (
	"context"
	"strings"
	"time"
)

// Metered returns the result of get. If the session reports to telemetry (session.Report), Metered
// counts the grant under the name of r: its wait, from this call on, and its end.
//
// A recipe calls it where the application's wait begins. The znode of a grant may exist earlier
// than the grant, and a recipe may hold znodes that are not grants of its own. So Grant.Begin
// does not count.
func Metered[G interface{ OnEnd(func(reason error)) }](ctx context.Context, r Recipe, get func() (G, error)) (none G, _ error) {
	all, err := MeteredMany(ctx, r, func() ([]G, error) {
		g, err := get()
		return []G{g}, err
	})
	if err != nil {
		return none, err
	}
	return all[0], nil
}

// MeteredMany is Metered for several grants that the application gets at once.
func MeteredMany[G interface{ OnEnd(func(reason error)) }](ctx context.Context, r Recipe, get func() ([]G, error)) ([]G, error) {
	asked := time.Now()
	all, err := get()
	meters := r.Session.Meters()
	if err != nil || meters == nil {
		return all, err
	}
	capability := strings.ReplaceAll(r.name, " ", "-")
	for _, g := range all {
		meters.Granted(ctx, capability, time.Since(asked))
		g.OnEnd(func(reason error) { meters.Ended(capability, reason) })
	}
	return all, nil
}
