package recipes

import "context"

// Delivery is an element that was received and has to be acknowledged. As a
// [Grant] it tells by Done when the claim no longer stands, so that somebody
// else may have the element (CURATOR-605: the end of a session hands an element
// to two consumers; here the first of them is told, before the second gets it if
// it runs at all), and Write writes only while it stands. Its znode is the
// ephemeral claim, claims/<element>-<attempt>, and its token grows with every
// delivery of the element.
type Delivery interface {
	Grant

	// Element is what was received.
	Element() Element

	// Attempt counts the deliveries of the element, this one included, from 1.
	// It is the version of the element's znode, which every claim sets.
	Attempt() int

	// Ack deletes the element and its claim in one transaction, if the claim
	// stands. Done is closed before anything is sent.
	//
	// It returns nil when the element is known to be gone. If the claim was
	// lost the error matches ErrNotHeld: the element will be, or has been,
	// delivered again. If the session is lost on the way it matches
	// ErrUnknownOutcome too. If ctx ends first it returns ctx's error and the
	// acknowledgement goes on in the background; calling again waits for it and
	// returns its result. After Return it matches ErrReleased.
	Ack(ctx context.Context) error

	// Return gives the element back to be delivered again, in its old place,
	// or moves it to the dead letters if this was the last attempt. Its errors
	// are those of Ack.
	Return(ctx context.Context) error
}
