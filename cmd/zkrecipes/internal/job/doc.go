// Package job runs a command as a shell runs a job, and passes signals on to it.
//
//  1. [NewRelay] receives the signals of this process. The first one ends its context.
//  2. [Relay.Start] starts the command. From now on the relay passes signals on to it.
//  3. [Job.Exited] closes when the command has ended, [Job.Gone] when all processes that it
//     has started have ended. [Job.End] ends them early.
//  4. After the command, the next signal ends the context of [Relay.Interruptible].
//     [Relay.Ended] reports whether a signal has ended the command. The next command begins
//     with step 2.
//
// To run several commands at a time, use [StartWith] and pass signals on with [Job.Pass].
//
// A job has its own process group, so that a signal reaches all processes that the command
// has started. In the foreground of a terminal it has none, because a background group cannot
// read from the terminal. Windows has no process groups, and a command can only be killed.
package job
