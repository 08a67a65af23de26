// Package bench runs experiments on locks, elections and the other recipes. It measures
// how fast they change hands and what that costs. What varies is the number of
// contenders, their strategy of waiting and the way in which ZooKeeper is reached.
//
// It knows only the contract (package recipes). Whoever uses it brings the ways
// to open a session. In order:
//
//  1. Describe an [Experiment] and check it with [Experiment.Validate].
//  2. Get its [Trial]s, in the order in which they should be run, from
//     [Experiment.Trials].
//  3. Run each with [Experiment.Run]. It gives a record.Record.
//  4. Render the records with package record, or keep them and use the packages
//     below later.
//
// Package bench/load is what the trials do. Package bench/record is what they measured,
// and its file format. The packages in internal/zkbench are the parts of the command
// zkbench: they compare, plan, report, search for an objective, and run trials on
// several machines.
package bench
