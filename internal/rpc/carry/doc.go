// Package carry sends unary gRPC calls over a separate connection. Such a call costs one
// message each way, and with both ends in one process 0.4 of a gRPC call's processor time.
// BenchmarkTransport measures both, and the bare TLS connection.
//
// The host's side is a [Conn], a connection for generated stubs. The plugin's side is a
// [Dispatcher], on which services are registered as on a gRPC server. Stubs, services and
// interceptors see no difference: deadlines, cancellation, errors with their details,
// metadata and telemetry work as in gRPC.
//
// Order of use in the host: dial with [DialOption], then [New] and [Conn.Start]. In the
// plugin: [NewDispatcher], and register the services. Pass connections that negotiate
// [Protocol] to [Dispatcher.ServeConn].
//
// # Why not HTTP/2
//
// HTTP/2 needs a writing goroutine, a reading goroutine and one for the stream on each side,
// and each must be woken for each call. Here the caller writes, and the reading goroutine
// makes the call or wakes the caller. Plugins without TLS, and hosts in other languages, make
// gRPC calls. An earlier version sent messages over one long-lived gRPC stream. It took half
// of a gRPC call's processor time, and no host needed it.
//
// All sessions of a host share one connection. With 20 callers, a call took 24 us on one
// connection for all, and 37 us with a connection for each (BenchmarkConnections): answers
// that arrive while one is sent share a write. A connection also costs two goroutines and some 70 KiB of
// buffers on each side, more than the rest of a session.
//
// # Flow
//
// No call queues for the connection. The plugin announces in its [Limits] how many unanswered
// calls a host may have, and of what size. A call that would exceed the limits is made as a
// gRPC call, and so is a call with a large request. The receiving side reads at all times. It
// passes calls to other goroutines, and answers to the waiting callers. Large answers are cut
// into parts, and other answers pass between the parts.
//
// A host's call never waits for the plugin to read; see [Calls.put]. A plugin whose host does
// not read its answers stops reading calls when [MaxUnsent] bytes wait, and ends the
// connection at [MaxKept].
//
// A session's heartbeats use a gRPC stream of their own, which nothing here delays.
package carry
