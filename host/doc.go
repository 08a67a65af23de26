// Package host is what a host application imports: it launches the plugin
// process and opens sessions through it. A host binary does not carry a
// ZooKeeper client.
//
//  1. [Launch] finds and starts the plugin; [Find] says where it looks. [Supervise]
//     also starts it again after a crash. [InProcess] serves the same gRPC inside
//     this process, without another executable.
//  2. [Plugin.Open] opens a session. It is a recipes.Opener.
//  3. [Plugin.Close] ends the sessions and the process.
//
// # Who may die
//
//   - The host is killed: the plugin notices at once. It closes its sessions, which
//     frees their locks, and exits. With Config.Lifetime it does so when the host's
//     children have ended too.
//   - The host is frozen: the plugin closes a session when it has heard nothing
//     from the host for the session timeout.
//   - The plugin is killed: with a [Supervisor], sessions go on in the next plugin, and
//     what they hold stands (see below). After [Launch] sessions and holds are lost in
//     well under a second, with recipes.ErrPluginLost. ZooKeeper frees the locks at the
//     session timeout.
//   - The plugin is frozen: the host's own clock ends the sessions before
//     ZooKeeper does, with recipes.ErrDeadline. Close still returns.
//   - The host's process group gets a signal (Ctrl-C, a shell that ends a job,
//     timeout(1)): the plugin does not, because it is in a group of its own. The
//     host decides what to release.
//   - The plugin itself gets a SIGTERM: it ends, and with it all that the host holds.
//     systemd sends one to every process of a unit. Set KillMode=mixed there.
//
// # Resuming
//
// A session that a [Supervisor] has opened outlives a plugin that is killed or crashes, or
// is replaced by [Supervisor.Upgrade]. Both plugins need the capability "resume". The
// session is Suspended until the next plugin has resumed it. Its deadline counts on
// meanwhile.
//
//   - Locks, shared and priority locks, permits, leaderships, memberships, names,
//     deliveries, passages of double barriers, and sites and coordinators of transactions
//     stand, with the same token. Nobody else is granted them.
//   - Contenders that wait keep their place if they have been told it (Joined). Others go
//     to the end of the line, and so does a contender for a permit of another dialect.
//     Waits for elements of a queue and for barriers go on.
//   - Streams give what has changed meanwhile.
//   - A write or another change that was under way fails with recipes.ErrUnknownOutcome.
//     What begins without a plugin waits for the next one. Reads are repeated.
//   - A Close that was under way fails with it too. Nobody takes the session up to end it,
//     so that ZooKeeper frees what it held at the session timeout.
//   - What does not stand any more, because its znode was deleted, is lost alone: Done
//     closes, and Err matches recipes.ErrNotHeld. The session goes on.
//   - Stats count from the last plugin's start on.
//
// A plugin that ends by itself or by SIGTERM closes its sessions, and they are lost. So
// they are if a session's stream ends while the plugin runs. A frozen plugin is not
// replaced. The plugin of a debugger cannot be waited for, so its sessions are not resumed.
//
// # What the plugin can see
//
// The plugin gets none of the host's environment but the names in
// [InheritedEnv] and what Config.Env adds. Its stdin is empty. It talks to the
// host over a Unix socket in a directory that only this user can enter, on Windows
// over a loopback port. The connection has mutual TLS, with certificates that are
// made for this one launch.
//
// # Logs and telemetry
//
// Config.Logger receives what the plugin logs, at its level. The field @module names
// the plugin's subsystem: zkrecipes-plugin.session, .rpc or .zookeeper. Passwords
// and keys are never logged.
//
// With Config.TracerProvider and Config.MeterProvider, OpenTelemetry traces and
// measures every call, and counts what sessions hold, wait for and lose. The plugin's
// own spans are below the host's. They need a plugin that was given a provider: see
// plugin.Serve.
package host
