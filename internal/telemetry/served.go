package telemetry

import "context"

type servedKey struct{}

// Served marks the context of an Opener: a plugin opens the session for its host, which reports
// it. If the library reported it too, it would count twice.
func Served(ctx context.Context) context.Context { return context.WithValue(ctx, servedKey{}, true) }

// IsServed reports whether a context is marked.
func IsServed(ctx context.Context) bool { return ctx.Value(servedKey{}) != nil }
