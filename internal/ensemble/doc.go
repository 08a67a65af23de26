// Package ensemble starts, stops, freezes and kills real Apache ZooKeeper servers on
// loopback: one, or an ensemble. It is for tests that need a real server and for
// zkbench's measurements.
//
// In order:
//
//  1. [Find] an installed ZooKeeper and its Java, or let Start do it.
//  2. [Start] an ensemble; it returns when every server serves.
//  3. Give [Ensemble.Connect] to a client. Ask for the [Ensemble.Leader],
//     [Server.Kill], [Server.Restart], [Server.Freeze] and [Server.Thaw] servers,
//     read their figures with [Server.Mntr].
//  4. [Ensemble.Stop]: no process and no file is left.
//
// The servers are configured as ZooKeeper ships. [Config.NoSync] and
// [Config.FastStart] make tests quick and measurements wrong: without fsync, and with
// a JVM that compiles less.
//
// On Linux the servers die with the process that started them, however it dies.
// Elsewhere they go on running after a SIGKILL of that process. Freezing needs the
// signals of a Unix.
//
// Tests use the subpackage ensembletest. It skips them loudly where no ZooKeeper is
// installed.
package ensemble
