// Package benchtest is the contract without a server: locks and elections in
// memory, first come, first granted, with the counters that ZooKeeper's recipes
// would show. It serves two ends:
//
//   - tests of the benchmark, broken locks included;
//   - the no-op recipe: what the benchmark itself costs when the lock is free.
//
// It is not a model of ZooKeeper: nothing fails, expires or waits on a network,
// and of the contract only what a benchmark uses is there. What is not there
// answers recipes.ErrInternal.
package benchtest
