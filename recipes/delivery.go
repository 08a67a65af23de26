package recipes

import "context"

// Delivery is a received element that must be acknowledged.
//
// It is a [Grant]. Done closes when the claim is lost, because another consumer may then
// receive the element. Write commits only while the claim is held. Its znode is the ephemeral
// claim, claims/<element>-<attempt>. Its token grows with every delivery of the element.
//
// When a session ends, its element is delivered to another consumer (CURATOR-605). If the
// first consumer runs, its Done closes before that.
type Delivery interface {
	Grant

	// Element is the received element.
	Element() Element

	// Attempt counts the deliveries of the element, from 1. It is the version of the
	// element's znode, which every claim sets.
	Attempt() int

	// Ack deletes the element and its claim in one transaction, if the claim is held. It
	// closes Done before it sends anything.
	//
	// Ack returns nil when the element is deleted. If the claim was lost, the error matches
	// ErrNotHeld: the element was or will be delivered again. If the session is lost after
	// the request was sent, the error also matches ErrUnknownOutcome, so test for that
	// first. That is also the error if the plugin dies before it answers, and the next one
	// cannot resume the delivery. If ctx ends first, Ack returns ctx's error and continues
	// in the background; another call waits for it and returns its result. While the server
	// throttles, Ack retries. After Return the error matches ErrReleased.
	Ack(ctx context.Context) error

	// Return puts the element back into its place, to be delivered again. After the last
	// attempt it moves the element to the dead letters. Its errors are those of Ack.
	Return(ctx context.Context) error
}
