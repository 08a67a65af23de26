// Package host is what a host application imports: it launches the plugin
// process and opens sessions through it. A host binary does not carry a
// ZooKeeper client.
//
//  1. [Launch] finds and starts the plugin (see [Find] for where), or [InProcess] serves the same gRPC inside
//     this process, without another executable.
//  2. [Plugin.Open] opens a session: a recipes.Opener.
//  3. [Plugin.Close] ends the sessions and the process.
//
// # Who may die
//
//   - The host is killed: the plugin notices at once, closes its sessions, so
//     that their locks are free, and exits.
//   - The host is frozen: the plugin closes a session when it has heard nothing
//     from the host for the session timeout.
//   - The plugin is killed: sessions and holds are lost in well under a second,
//     with recipes.ErrPluginLost. ZooKeeper frees the locks at the session
//     timeout. Everything that it held is gone, so that nothing restarts it
//     unless that was asked for: a [Supervisor] launches it again, and tells,
//     but brings back no session.
//   - A signal to the host's process group (Ctrl-C, a shell that ends a job,
//     timeout(1)) is the host's business: the plugin is in a group of its own. A
//     SIGTERM to the plugin itself ends it, and all that the host holds: under
//     systemd, which sends it to every process of a unit, set KillMode=mixed.
//   - The plugin is frozen: the host's own clock ends the sessions before
//     ZooKeeper does, with recipes.ErrDeadline. Close still returns.
//
// # What the plugin can see
//
// The plugin gets none of the host's environment but the names in
// [InheritedEnv] and what Config.Env adds. Its stdin is empty. It talks to the
// host over a Unix socket (on Windows: a loopback port) in a directory that
// only this user can enter, with mutual TLS whose certificates are made for
// this one launch.
//
// # Logs and telemetry
//
// What the plugin logs comes out of SessionConfig.Logger, at its level, with the
// plugin's subsystem as the field @module (zkrecipes-plugin.session, .rpc,
// .zookeeper). Passwords and keys are never logged.
//
// With Config.TracerProvider and Config.MeterProvider every call is traced and
// measured by OpenTelemetry, and what sessions hold, wait for and lose is
// counted. The plugin's own spans need a plugin that was given a provider
// (plugin.Serve); they are below the host's.
package host
