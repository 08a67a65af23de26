// Package bench runs experiments on locks and elections: how fast they change
// hands, and what that costs, by the number of contenders, their strategy of
// waiting and the way in which ZooKeeper is reached.
//
// It knows only the contract (package recipes). Whoever uses it brings the ways
// to open a session. In order:
//
//  1. Describe an [Experiment] and check it with [Experiment.Validate].
//  2. Get its [Trial]s, in the order in which they should be run, from
//     [Experiment.Trials].
//  3. Run each with [Experiment.Run]. It gives a record.Record.
//  4. Render the records with package record.
//
// What the trials do is in package bench/load; what their figures are called is
// in package bench/record.
package bench
