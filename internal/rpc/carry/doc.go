// Package carry takes unary gRPC calls over a connection of their own. Such a call costs a
// message each way, and with both ends in one process 0.4 of a gRPC call's processor
// time. BenchmarkTransport measures both, and what the bare TLS connection takes.
//
// The host's side is a [Conn], a connection for generated stubs. The plugin's side
// is a [Dispatcher], with which services are registered as with a gRPC server.
// Stubs, services and interceptors do not notice the difference. Deadlines,
// cancellation, errors with their details, metadata and telemetry are those of gRPC.
//
// Order of use in the host: dial with [DialOption], then [New] and [Conn.Start]. In
// the plugin: [NewDispatcher], and register the services. Give it connections that ask for
// [Protocol] by [Dispatcher.ServeConn].
//
// # Why not HTTP/2
//
// HTTP/2 costs a goroutine that writes, one that reads and one for the stream on each
// side, and each of them has to be woken for each call. Here the caller writes, and the
// goroutine that reads makes the call or wakes the caller. Plugins without TLS, and hosts in
// other languages, make gRPC calls. Messages over one gRPC stream that stays open lay
// between the two, with half of a gRPC call's processor time. No host needed that.
//
// All sessions of a host share one connection. With one for each session, 20 callers
// took 37 us for a call, and 24 us with one for all (BenchmarkConnections): answers that
// come while one is sent share its write. A connection also takes two goroutines and
// some 70 KiB of buffers on each side, which is more than a session takes otherwise.
//
// # Flow
//
// No call waits in line for the connection. The plugin says in its [Limits] what a host may
// have on it. A call that would exceed them is made as a gRPC call of its own, and so
// is a call whose request is large. The side that receives reads at all times. It
// hands calls to other goroutines, and answers to those who wait for them. Large
// answers are cut into parts, between which other answers pass.
//
// A host's call never waits for the plugin to read: [Calls.put] says how. A plugin
// whose host does not read its answers reads no more calls when [MaxUnsent] bytes wait,
// and ends the connection at [MaxKept].
//
// A session's beats have a gRPC stream of their own, which nothing here holds up.
package carry
