// Package carry takes unary gRPC calls over one stream that stays open
// (CallService.Carry). Such a call costs a message each way, and about half of the
// processor time of a gRPC call.
//
// The host's side is a [Conn], a connection for generated stubs. The plugin's side
// is a [Dispatcher], with which services are registered as with a gRPC server.
// Stubs, services and interceptors do not notice the difference. Deadlines,
// cancellation, errors with their details, metadata and telemetry are those of gRPC.
//
// Order of use in the host: dial with [DialOption], then [New] and [Conn.Start]. In
// the plugin: [NewDispatcher], register the services, and register the Dispatcher
// itself as the CallService.
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
