package recipes

import "context"

// Delivery is an element that was received and has to be acknowledged.
//
// It is a [Grant]. Done closes when the claim no longer stands, so that another
// consumer may have the element, and Write writes only while the claim stands. Its
// znode is the ephemeral claim, claims/<element>-<attempt>. Its token grows with
// every delivery of the element.
//
// When a session ends, its element goes to a second consumer (CURATOR-605). Here
// the first consumer is told before the second gets the element, if the first runs
// at all.
type Delivery interface {
	Grant

	// Element is what was received.
	Element() Element

	// Attempt counts the deliveries of the element, this one included, from 1.
	// It is the version of the element's znode, which every claim sets.
	Attempt() int

	// Ack deletes the element and its claim in one transaction, if the claim
	// stands. It closes Done before it sends anything.
	//
	// Ack returns nil when the element is known to be gone. If the claim was lost,
	// the error matches ErrNotHeld: the element will be, or has been, delivered
	// again. If the session is lost while the request is on its way, the error
	// matches ErrUnknownOutcome too, so test for that first. The same error comes when
	// the plugin dies before it answers, and the next one cannot resume the delivery. If
	// ctx ends first, Ack returns ctx's error and the acknowledgement goes on in the
	// background. Another call waits for it and returns its result. While the server
	// throttles, the request is sent again. After Return the error matches ErrReleased.
	Ack(ctx context.Context) error

	// Return gives the element back, to be delivered again from its old place. If
	// this was the last attempt, it moves the element to the dead letters. Its
	// errors are those of Ack.
	Return(ctx context.Context) error
}
