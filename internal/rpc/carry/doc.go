// Package carry takes unary gRPC calls over one connection of their own, or over one
// stream that stays open (CallService.Carry). Such a call costs a message each way.
// With both ends in one process that is 0.4 of a gRPC call's processor time on a
// connection, and 0.5 on a stream. BenchmarkTransport measures both, and what the bare
// TLS connection takes.
//
// The host's side is a [Conn], a connection for generated stubs. The plugin's side
// is a [Dispatcher], with which services are registered as with a gRPC server.
// Stubs, services and interceptors do not notice the difference. Deadlines,
// cancellation, errors with their details, metadata and telemetry are those of gRPC.
//
// Order of use in the host: dial with [DialOption], then [New] and [Conn.Start]. In
// the plugin: [NewDispatcher], register the services, and register the Dispatcher
// itself as the CallService. Give it connections that ask for [Protocol] by
// [Dispatcher.ServeConn].
//
// # Connection and stream
//
// The messages on both are the same, and so are the rules. HTTP/2 costs a goroutine
// that writes, one that reads and one for the stream on each side, and each of them has
// to be woken for each call. On the connection the caller writes, and the goroutine
// that reads makes the call or wakes the caller. The stream is there for plugins
// without TLS, for older plugins, and for hosts in other languages.
//
// All sessions of a host share one connection. With one for each session, 20 callers
// took 37 us for a call, and 24 us with one for all (BenchmarkConnections): answers that
// come while one is sent share its write. A connection also takes two goroutines and
// some 70 KiB of buffers on each side, which is more than a session takes otherwise.
//
// # Flow
//
// Nobody waits in line for a stream. The plugin says in its [Limits] what a host may
// have on it. A call that would exceed them is made as a gRPC call of its own, and so
// is a call whose request is large. The side that receives reads at all times. It
// hands calls to other goroutines, and answers to those who wait for them. Large
// answers are cut into parts, between which other answers pass.
//
// A host's call never waits for the plugin to read: [stream.put] says how. A plugin
// whose host does not read its answers reads no more calls when [MaxUnsent] bytes wait.
//
// A session's beats have a stream of their own, and gRPC does not let one stream
// hold up another.
package carry
