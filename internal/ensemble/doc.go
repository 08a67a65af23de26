// Package ensemble starts, stops, freezes and kills real Apache ZooKeeper
// servers on loopback: one, or an ensemble, for the tests that need the real
// thing and for zkbench's measurements.
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
// The servers are configured as ZooKeeper ships: what makes a test quick and a
// measurement wrong (no fsync, a JVM that compiles less) has to be asked for by
// [Config.NoSync] and [Config.FastStart].
//
// On Linux the servers die with the process that started them, however it dies.
// Elsewhere a SIGKILLed parent leaves its servers running. Freezing needs the
// signals of a Unix.
//
// Tests use the subpackage ensembletest, which skips loudly where no ZooKeeper
// is installed.
package ensemble
