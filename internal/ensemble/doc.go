// Package ensemble starts, stops, freezes and kills real Apache ZooKeeper servers on
// loopback, one server or an ensemble. It is for tests that need a real server and for
// zkbench's measurements.
//
// Use it in this order:
//
//  1. [Find] an installed ZooKeeper and its Java, or let Start do it.
//  2. [Start] an ensemble. It returns when every server serves.
//  3. Give [Ensemble.Connect] to a client. Find the [Ensemble.Leader],
//     [Server.Kill], [Server.Restart], [Server.Freeze] and [Server.Thaw] servers,
//     and read their figures with [Server.Mntr].
//  4. Call [Ensemble.Stop]. It leaves no process and no file behind.
//
// The servers have ZooKeeper's default configuration. [Config.NoSync] and
// [Config.FastStart] make tests quick and measurements wrong: NoSync skips fsync, and with
// FastStart the JVM compiles less.
//
// On Linux the servers are killed when the process that started them ends for any reason.
// On other systems they keep running after a SIGKILL of that process. Freezing needs Unix
// signals.
//
// Tests use the subpackage ensembletest. If no ZooKeeper is installed, it skips them with
// a message.
package ensemble
