package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func firstEvent(f *fixture) {
	s := f.open()
	if e := receive(f, s.Events(f.ctx), "the first event"); e.State != recipes.Connected || e.Reason != nil {
		f.Errorf("%+v; want connected", e)
	}
	f.sever(s)
	if e := receive(f, s.Events(f.ctx), "the first event"); e.State != recipes.Suspended || e.Reason != nil {
		f.Errorf("%+v; want suspended", e)
	}
}

func suspension(f *fixture) {
	s := f.open()
	id := s.ID()
	one, two := s.Events(f.ctx), s.Events(f.ctx)
	want := func(state recipes.State) {
		f.Helper()
		for _, events := range []<-chan recipes.Event{one, two} {
			if e := receive(f, events, "an event"); e.State != state {
				f.Fatalf("%+v; want %v", e, state)
			}
		}
		if got := s.State(); got != state {
			f.Errorf("State = %v; want %v", got, state)
		}
	}
	want(recipes.Connected)
	for range 2 {
		f.relay(s).Refuse()
		want(recipes.Suspended)
		f.relay(s).Restore()
		want(recipes.Connected)
	}
	if s.ID() != id || s.Err() != nil {
		f.Errorf("session %#x, %v; want %#x", s.ID(), s.Err(), id)
	}
}

func slowReader(f *fixture) {
	s := f.open()
	unread, first := s.Events(f.ctx), s.Events(f.ctx)
	receive(f, first, "the first event")
	for range 3 {
		f.sever(s)
		f.reconnect(s)
	}
	f.must(s.Close(f.ctx))
	for _, events := range []<-chan recipes.Event{unread, first} {
		var last recipes.Event
		for {
			e, ok := <-events
			if !ok {
				break
			}
			if last.State == recipes.Lost {
				f.Errorf("%+v after the loss", e)
			}
			last = e
		}
		if last.State != recipes.Lost {
			f.Errorf("the last event is %+v; want the loss", last)
		}
		f.is(last.Reason, recipes.ErrSessionLost, recipes.ErrClosed)
	}
}

func eventsCancelled(f *fixture) {
	s := f.open()
	ctx, cancel := context.WithCancel(f.ctx)
	events := s.Events(ctx)
	other := s.Events(f.ctx)
	cancel()
	drained(f, events, "the cancelled channel")
	receive(f, other, "an event of the other channel")
	drained(f, s.Events(f.ended()), "the channel of an ended context")
}

func eventsAfterLoss(f *fixture) {
	s := f.open()
	f.must(s.Close(f.ctx))
	events := s.Events(f.ctx)
	if e := receive(f, events, "the loss"); e.State != recipes.Lost {
		f.Errorf("%+v; want the loss", e)
	} else {
		f.is(e.Reason, recipes.ErrClosed)
	}
	drained(f, events, "the channel of a lost session")
}
