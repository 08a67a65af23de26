package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func waitReconnects(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
		f.sever(s)
	}
	p.vote(silent, commits)
	calls[1].blocked(f)
	for _, s := range append([]recipes.Client{p.coordinator}, p.sessions[0]) {
		f.relay(s).Restore()
	}
	p.vote(commits)
	p.decided(calls, true, "")
}

func waitSessionLost(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	calls := p.wait()
	for i, s := range []recipes.Client{p.coordinator, p.sessions[0]} {
		f.must(s.Close(f.ctx))
		_, err := calls[i].result(f)
		f.is(err, recipes.ErrSessionLost, recipes.ErrClosed)
	}
	_, err := p.tx.Abort(f.ctx, "")
	f.is(err, recipes.ErrSessionLost)
	_, err = f.transaction(f.open(), "").Abort(f.ctx, "somebody has to")
	f.must(err)
	if d := calls[2].value1(f); d.Commit {
		f.Errorf("decided %+v", d)
	}
}

func waitCancelled(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	_, err := p.sites[0].Wait(f.briefly())
	f.is(err, context.DeadlineExceeded)
	_, err = p.tx.Coordinate(f.briefly())
	f.is(err, context.DeadlineExceeded)
	p.vote(commits, commits)
	d, err := p.tx.Coordinate(f.ctx)
	f.must(err)
	f.decision(d, true, "")
}

// transactionContextTests are about contexts that end, for every call alike.
func transactionContextTests(v recipes.Variant) []test {
	calls := []struct {
		name string
		call func(context.Context, recipes.Transaction, recipes.Site) error
	}{
		{"Begin", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error { return t.Begin(ctx, nil, "1") }},
		{"Coordinate", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Coordinate(ctx)
			return err
		}},
		{"Abort", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Abort(ctx, "")
			return err
		}},
		{"Join", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Join(ctx, "1")
			return err
		}},
		{"Status", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error {
			_, err := t.Status(ctx)
			return err
		}},
		{"Forget", func(ctx context.Context, t recipes.Transaction, _ recipes.Site) error { return t.Forget(ctx) }},
		{"Vote", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error { return s.Vote(ctx, commits) }},
		{"Wait", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error {
			_, err := s.Wait(ctx)
			return err
		}},
		{"Done", func(ctx context.Context, _ recipes.Transaction, s recipes.Site) error { return s.Done(ctx) }},
	}
	var tests []test
	for _, c := range calls {
		for name, fault := range map[string]func(*fixture, recipes.Client){
			"a server that does not answer": func(f *fixture, s recipes.Client) { f.relay(s).Hold() },
			"a connection that is down":     func(f *fixture, s recipes.Client) { f.sever(s) },
		} {
			tests = append(tests, test{string(v) + "/" + name + "/" + c.name, func(f *fixture) {
				p := f.party(v, 1)
				tx := f.transaction(p.sessions[0], v)
				fault(f, p.sessions[0])
				err := c.call(f.briefly(), tx, p.sites[0])
				f.is(err, context.DeadlineExceeded)
				f.isNot(err, recipes.ErrSessionLost)
				if name == "a connection that is down" && !errors.Is(err, recipes.ErrUnknownOutcome) {
					f.is(err, recipes.ErrUnavailable)
				}
				f.relay(p.sessions[0]).Restore()
				f.must(p.sites[0].Vote(f.ctx, commits))
				_, err = p.tx.Coordinate(f.ctx)
				f.must(err)
				_, err = p.sites[0].Wait(f.ctx)
				f.must(err)
				f.must(p.sites[0].Done(f.ctx))
				f.awaitNode(f.path("app", "Tx"), false)
			}})
		}
	}
	return tests
}
