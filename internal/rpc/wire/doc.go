// Package wire converts between the types of the contract (package recipes) and the messages
// of zkrecipes.v1. Its functions are pure: ToX converts a value to its message, X converts a
// message back, and none has logic of its own.
//
// One table (see reason.go) converts errors in both directions, so that errors.Is gives the
// same answers on both sides.
package wire

// each converts a list, in the same order.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = convert(a)
	}
	return out
}
