// Package plan answers questions of capacity from a recorded sweep: what a line of
// N contenders costs, and how long one may be.
//
//  1. [Fit] the records of one strategy. It needs at least [MinLevels] numbers of
//     contenders, because a curve through fewer fits anything.
//  2. Ask the [Model]: [Model.At] for a number of contenders, [Model.Most] for a
//     limit, [Scalability.Peak] for where more contenders stop helping.
//  3. Ask [Model.Ends] what bounds the line, [Model.Shares] what a handoff keeps busy, and
//     [Limits.Check] which of ZooKeeper's settings stands in the way.
//
// # The models
//
// Throughput follows the Universal Scalability Law (Gunther),
//
//	X(N) = λN / (1 + σ(N-1) + κN(N-1))
//
// with λ, σ and κ not negative. Turned over, N/X(N) is linear in 1, N-1 and N(N-1). So
// least squares of relative errors find the best non-negative coefficients exactly. A
// numerical search was considered: it would only add starting points and tolerances.
//
// Costs of an operation follow from what the strategy does in a line of N. A
// predecessor lists N names once for each handoff: a + bN. The herd has up to N
// contenders list N names each: a + bN + cN². Handoff costs the same however many wait.
// Of its N-1 handoffs all except the first are by a contender that has waited and
// watches its own place: a + b(N-2)/(N-1) + cN. Coefficients are not negative here
// either: nothing gets cheaper because more wait.
//
// # Far from what was measured
//
// Beyond a stated factor of the largest level the Universal Scalability Law is of no use:
// its terms fit what they were fitted to, and mean nothing ten times farther. There the
// service model answers: a handoff takes what its strategy does. That is a constant, a
// part of the first handoff of a trial (which is slower), and for predecessor and herd
// what they list. Levels of few handoffs count less. A herd's time grows somewhere between
// the length of the line and its square.
//
// A round-trip time between sessions and servers is added once for each round trip that a
// handoff waits for: see [RoundTrips]. Records at several delays tell how many there are.
//
// # How far to believe it
//
// Intervals come from a bootstrap. It draws whole trials, never single handoffs,
// because those depend on each other. Each draw is off by one of the errors that the
// model made on levels that were left out of its fit. So an interval is of what a
// measurement at N would give, and not only of the curve.
//
// Those of the service model are of the scatter of trials and levels, and widen with the
// logarithm of the distance. How fast is learned by predicting each level from those
// below it. The tests do the same with recorded sweeps.
package plan
