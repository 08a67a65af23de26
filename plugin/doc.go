// Package plugin turns a program into a zkrecipes plugin: an executable that a host launches
// and that serves the contract (package recipes) over gRPC. The whole main function of a
// plugin is
//
//	func main() { plugin.Serve(zookeeper.Open) }
//
// [Limits], [Resume] and [Telemetry] are options of [Serve].
//
// plugin/proto defines the interface, and internal/rpc implements both sides of it in Go.
// Hosts import package host.
package plugin
