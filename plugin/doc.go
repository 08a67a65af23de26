// Package plugin turns a program into a zkrecipes plugin: an executable that a
// host launches and that serves the contract (package recipes) over gRPC. The
// whole of a plugin's main is
//
//	func main() { plugin.Serve(zookeeper.Open) }
//
// [Limits] and [Telemetry] are options of [Serve].
//
// plugin/proto is the interface, internal/rpc the two halves of it in Go. Hosts
// import package host.
package plugin
