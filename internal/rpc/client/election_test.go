package client_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestElectionFromCampaignToResignation(t *testing.T) {
	l := newLink(t)
	a, b := l.open(t, 0), l.open(t, 0)
	_, err := election(t, a).Leader(ctx(t))
	matches(t, err, recipes.ErrNoLeader)
	leadership, err := election(t, a).Campaign(ctx(t), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	leader, err := election(t, b).Leader(ctx(t))
	if err != nil || leader.Znode != leadership.Znode() || string(leader.Data) != "a" || leader.Acknowledged {
		t.Fatalf("%+v, %v", leader, err)
	}
	acknowledged := make(chan recipes.Leader, 1)
	go func() {
		l, _ := election(t, b).Acknowledged(ctx(t))
		acknowledged <- l
	}()
	if err := leadership.Acknowledge(ctx(t), []byte("done")); err != nil {
		t.Fatal(err)
	}
	if got := <-acknowledged; !got.Acknowledged || string(got.Acknowledgement) != "done" {
		t.Errorf("%+v", got)
	}
	candidates, err := election(t, b).Candidates(ctx(t))
	if err != nil || len(candidates) != 1 || candidates[0].SessionID != a.ID() {
		t.Errorf("%v, %v", candidates, err)
	}
	if err := leadership.Resign(ctx(t)); err != nil {
		t.Fatal(err)
	}
	matches(t, leadership.Acknowledge(ctx(t), nil), recipes.ErrNotHeld, recipes.ErrReleased)
	_, err = election(t, b).Leader(ctx(t))
	matches(t, err, recipes.ErrNoLeader)
}

func TestObserveTellsEveryChange(t *testing.T) {
	l := newLink(t)
	a := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	leaders, err := election(t, l.open(t, 0)).Observe(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-leaders; !got.None() {
		t.Errorf("%+v", got)
	}
	leadership, err := election(t, a).Campaign(ctx(t), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := <-leaders; got.Znode != leadership.Znode() || got.Acknowledged {
		t.Errorf("%+v", got)
	}
	if err := leadership.Acknowledge(ctx(t), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := <-leaders; !got.Acknowledged {
		t.Errorf("%+v", got)
	}
	if err := leadership.Resign(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if got := <-leaders; !got.None() {
		t.Errorf("%+v", got)
	}
	cancel()
	for range leaders { // closed
	}
}

func TestObserveEndsWithTheSession(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	leaders, err := election(t, s).Observe(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	l.world.Session(0).Lose(recipes.ErrExpired)
	for range leaders { // closed
	}
	closes(t, "session", s.Done())
	_, err = election(t, s).Observe(ctx(t))
	matches(t, err, recipes.ErrExpired)
}
