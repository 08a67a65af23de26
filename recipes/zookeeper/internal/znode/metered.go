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
// than the grant, and a recipe may hold znodes that are no grant of its own. So Grant.Begin does
// not count.
func Metered[G interface{ OnEnd(func(reason error)) }](ctx context.Context, r Recipe, get func() (G, error)) (G, error) {
	meters := r.Session.Meters()
	if meters == nil {
		return get()
	}
	asked := time.Now()
	g, err := get()
	if err != nil {
		return g, err
	}
	capability := strings.ReplaceAll(r.name, " ", "-")
	meters.Granted(ctx, capability, time.Since(asked))
	g.OnEnd(func(reason error) { meters.Ended(capability, reason) })
	return g, nil
}
