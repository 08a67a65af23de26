// Package lock has the lock and the semaphore, which grant the first contenders of a
// line.
//
// # Lock
//
// It follows ZooKeeper Recipes, "Locks". Package line has the procedure, and says
// where it diverges and why.
//
// # Semaphore
//
// It has no text. It is the line of "Locks" with the first n contenders granted, and
// n watches for each waiter, for which package line has the arguments. The
// contenders agree on the number of permits in the data of the path.
package lock
