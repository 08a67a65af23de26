// Package lock has the lock, the semaphore and slots, which grant the first contenders of
// a line.
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
//
// # Slots
//
// They are a semaphore whose contenders claim a number when they have a permit, as the
// contenders of a priority lock claim the lock. Type slots has the arguments.
package lock
