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
//     frees their locks, and exits.
//   - The host is frozen: the plugin closes a session when it has heard nothing
//     from the host for the session timeout.
//   - The plugin is killed: sessions and holds are lost in well under a second,
//     with recipes.ErrPluginLost. ZooKeeper frees the locks at the session
//     timeout. Only a [Supervisor] starts the plugin again. It tells the
//     application, and does not bring back a session: what the plugin held is gone.
//   - The plugin is frozen: the host's own clock ends the sessions before
//     ZooKeeper does, with recipes.ErrDeadline. Close still returns.
//   - The host's process group gets a signal (Ctrl-C, a shell that ends a job,
//     timeout(1)): the plugin does not, because it is in a group of its own. The
//     host decides what to release.
//   - The plugin itself gets a SIGTERM: it ends, and with it all that the host holds.
//     systemd sends one to every process of a unit. Set KillMode=mixed there.
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
