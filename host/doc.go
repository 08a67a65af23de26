// Package host is what an application imports to use the recipes through a plugin. It
// launches the plugin process and opens sessions through it. The application's binary
// contains no ZooKeeper client.
//
//  1. [Launch] finds and starts the plugin; [Find] documents where it searches.
//     [Supervise] also restarts it after a crash. [InProcess] serves the same gRPC in
//     this process, without another executable.
//  2. [Plugin.Open] opens a session. It is a recipes.Opener.
//  3. [Plugin.Close] closes the sessions and ends the process.
//
// # When a process dies
//
//   - The host is killed: the plugin notices at once, closes its sessions and exits. That
//     frees their locks. With Config.Lifetime it does so when the host's children have
//     exited too.
//   - The host is frozen: the plugin closes a session that has sent no heartbeat for the
//     session timeout.
//   - The plugin is killed: with a [Supervisor], the next plugin resumes the sessions and
//     what they hold (see below). After [Launch], sessions and holds are lost in well
//     under a second, with recipes.ErrPluginLost. ZooKeeper frees the locks at the session
//     timeout.
//   - The plugin is frozen: the host's own clock ends the sessions before ZooKeeper does,
//     with recipes.ErrDeadline. Close still returns.
//   - The plugin's socket is deleted, for example by a cleaner of TMPDIR: the connection stays
//     open, even while idle, and sessions continue. If it ends later, the sessions on it
//     are lost. The host ends the plugin, and a [Supervisor] starts another one.
//   - The host's process group gets a signal (Ctrl-C, a shell that ends a job,
//     timeout(1)): the signal does not reach the plugin, which has its own process group.
//     The host decides what to release.
//   - Host and plugin are killed at the same time: the directory of the socket stays. The next
//     start by the same user removes it, ten seconds after the socket's creation at the
//     earliest.
//   - The plugin itself gets a SIGTERM: it closes its sessions and exits, so the host
//     loses all that it holds. systemd sends a SIGTERM to every process of a unit. Set
//     KillMode=mixed there.
//
// # Resuming
//
// A session that was opened by a [Supervisor] survives a plugin that is killed, crashes or
// is replaced by [Supervisor.Upgrade]. Both plugins need the capability "resume". The
// session is Suspended until the next plugin has resumed it. Its deadline is not extended.
//
//   - These keep their token, and no other client is granted them: locks, shared and
//     priority locks, permits, leaderships, memberships, names, deliveries, passages of
//     double barriers, and the sites and coordinators of transactions.
//   - Waiters keep their place if Joined has reported it. The others, and waiters for a semaphore
//     in compatibility mode, go to the end of the wait queue. Waits for queue elements and for
//     barriers continue.
//   - Streams deliver the changes that happened in between.
//   - A write or another change that was in flight fails with recipes.ErrUnknownOutcome.
//     A call that begins while no plugin runs waits for the next one. Reads are repeated.
//   - A Close that was in flight fails with recipes.ErrUnknownOutcome too. No plugin
//     resumes its session, so ZooKeeper frees what it held at the session timeout.
//   - If another client has deleted the znode of a grant, only that grant is lost: Done
//     closes, and Err matches recipes.ErrNotHeld. The session continues. The same happens if
//     the next plugin does not support the recipe of the grant, or its dialect.
//   - Stats count from the start of the latest plugin.
//
// A plugin that exits by itself or by SIGTERM closes its sessions, and they are lost. A
// session is also lost if its stream ends while the plugin runs. A frozen plugin is not
// replaced. The sessions of a plugin in a debugger are not resumed, because the host cannot
// wait for the exit of a process that it did not start.
//
// # What the plugin can see
//
// The plugin gets only the environment variables that Config.Env adds, and those that its
// comment lists. Its stdin is empty. It serves the host on a Unix socket in a directory that
// only this user can enter, on Windows on a loopback port. The connection has mutual TLS, with
// certificates that are made for this launch.
//
// # Logs and telemetry
//
// Config.Logger receives what the plugin logs. Its level is the plugin's level too. The
// field @module names the plugin's subsystem: zkrecipes-plugin.session, .rpc or
// .zookeeper. Passwords and keys are never logged.
//
// With Config.TracerProvider and Config.MeterProvider, OpenTelemetry traces and measures
// every call, and measures the sessions, holds, waits and losses. A plugin whose author has
// passed plugin.Telemetry to plugin.Serve adds its own spans, as children of the host's.
package host
