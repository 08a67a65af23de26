// Package expiry has the one formula for the deadline of a session. The library applies it to its
// own contacts with ZooKeeper, and the host of a plugin to those that the plugin reports.
package expiry

import "time"

// Deadline returns until when a session can be relied on whose last contact was sent at contact. It
// is a twentieth of the timeout earlier than ZooKeeper's, for clocks that run at different rates
// and timers that fire late. It counts the time for which the machine was suspended.
func (c *Clock) Deadline(contact time.Time, timeout time.Duration) time.Time {
	return contact.Add(timeout - timeout/20 - c.Slept(contact))
}
