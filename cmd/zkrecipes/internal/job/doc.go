// Package job runs one command as a shell runs a job, and passes signals on to it.
//
//  1. [NewRelay] takes the signals of this process. The first one ends its context.
//  2. [Relay.Start] starts the command. From now on signals are passed on to it.
//  3. [Job.Exited] tells of the command's end, [Job.Gone] of the end of all that it
//     has started. [Job.End] ends them early.
//  4. After the command, the next signal ends the context of [Relay.Interruptible].
//     [Relay.Ended] says whether a signal has ended the command. Another command may
//     follow with step 2.
//
// Who runs several commands at a time uses [StartWith] and passes signals on with
// [Job.Pass].
//
// A job has a process group of its own, so that a signal reaches all that the
// command has started. In a terminal's foreground it has none: a group in the
// background could not read what is typed. On Windows there are no process groups,
// and a command can only be killed.
package job
