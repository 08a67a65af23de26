// Package job runs one command as a shell runs a job, and passes signals on to it.
//
//  1. [NewRelay] takes the signals of this process. The next one ends the context
//     of [Relay.Interruptible].
//  2. [Relay.Starting], then [Start]: from now on signals belong to the command.
//  3. [Relay.To] names the job that gets them, or says with nil that there is none.
//  4. [Job.Exited] tells of the command's end, [Job.Gone] of the end of all that it
//     has started. [Job.End] ends them early.
//  5. [Relay.Again] makes signals end a wait again, after the command.
//
// A job has a process group of its own, so that a signal reaches all that the
// command has started. In a terminal's foreground it has none: a group in the
// background could not read what is typed. On Windows there are no process groups,
// and a command can only be killed.
package job
