// Package workers has several processes, on several machines, run the same trials
// together. They find each other at a path in ZooKeeper. They begin and end each trial
// at a double barrier, and give what they measured to the first of them.
//
//  1. [Join] with a session that has no other use. Every worker is given a number.
//     Join returns when all are there and agree about what to run.
//  2. For each trial: [Crew.Begin] before its measured part, [Crew.End] after it,
//     and [Crew.Give] its record. The worker with number 1 gets all of them back.
//  3. [Crew.Finish] when all is done; [Crew.Close] in any case.
//
// All recipes are this project's own. A Group tells who is there. The records travel in
// its data, which is ephemeral: a run that dies leaves nothing behind. A DoubleBarrier
// is for beginning and ending together.
//
// # When a worker is missing
//
// Each has the time of Config.Patience to come to where the others wait. A worker
// whose session ends (its process died, or was interrupted) is noticed by a watch:
// at once if it closed it, else when its session timeout has passed. In either case
// the others end with an [AbsentError], which names who is missing.
package workers
