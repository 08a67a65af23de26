package line

import (
	"context"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Watches are the watches of one waiter. The waiter keeps those that have not fired when it
// lists again, so a waiter that watches several znodes does not read all of them each time. The
// zero value is empty.
type Watches struct {
	connection <-chan struct{} // the connection on which they were set
	byName     map[string]*session.Watch
}

// Retain keeps the watches on these entries that have not fired. If the connection is another
// one it keeps none, because events may have been missed.
func (w *Watches) Retain(entries []Entry, connection <-chan struct{}) {
	retained := make(map[string]*session.Watch, len(entries))
	for _, e := range entries {
		if watch := w.byName[e.Name]; watch != nil && w.connection == connection && !fired(watch) {
			retained[e.Name] = watch
		}
	}
	w.connection, w.byName = connection, retained
}

// Drop removes the watch on a child, so that Arm reads it again.
func (w *Watches) Drop(name string) { delete(w.byName, name) }

func fired(w *session.Watch) bool { return session.Happened(w.Fired()) }

// Arm watches a child of dir. If the child was not watched yet, Arm also reads it and sets fresh.
func (w *Watches) Arm(ctx context.Context, s *session.Session, dir, name string) (node session.Node, fresh bool, err error) {
	if w.byName[name] != nil {
		return session.Node{}, false, nil
	}
	node, watch, err := s.GetW(ctx, gopath.Join(dir, name))
	if err != nil {
		return session.Node{}, false, err
	}
	w.byName[name] = watch
	return node, true, nil
}

// Wait returns nil when the waiter must list again: a watch has fired, or the connection has
// ended.
func (w *Watches) Wait(ctx context.Context, s *session.Session, what string, disconnected <-chan struct{}) error {
	events := []<-chan struct{}{disconnected}
	for _, watch := range w.byName {
		events = append(events, watch.Fired())
	}
	return s.Wait(ctx, what, events...)
}
