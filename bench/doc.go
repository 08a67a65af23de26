// Package bench runs experiments on locks, elections and the other recipes: how
// fast they change hands, and what that costs, by the number of contenders, their
// strategy of waiting and the way in which ZooKeeper is reached.
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
// What the trials do is in package bench/load; what their figures are called, and
// the file format, is in package bench/record; internal/zkbench/probe watches the load
// generator, internal/zkbench/relay stands between sessions and servers, to cut them off or to
// cost what a second process costs, and internal/zkbench/workers has several processes measure
// together. From records, internal/zkbench/compare tells what became better or worse,
// internal/zkbench/plan answers questions of capacity and internal/zkbench/report draws. internal/zkbench/slo searches
// for the largest load under an objective.
package bench
