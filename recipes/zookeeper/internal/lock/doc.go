// Package lock has the recipes that grant the first contenders of a wait queue: locks and
// semaphores.
//
// # Lock
//
// It follows ZooKeeper Recipes, "Locks". Package line has the procedure, and says
// where it diverges and why.
//
// # Semaphore
//
// It has no source text. It is the wait queue of "Locks", in which the first n contenders
// are granted. Each waiter sets n watches. The comment of package line argues why. The contenders agree
// on the number of permits in the data of the path.
//
// # Slots
//
// Slots are a semaphore whose contenders claim a number after they have got a permit, as
// the contenders of a priority lock claim the lock. The comment of type slots argues why that
// is safe.
package lock
