package zkserver

// send queues bytes for the writer.
func (c *conn) send(b []byte) {
	c.mu.Lock()
	if c.mute || c.last {
		c.mu.Unlock()
		return
	}
	c.srv.traffic.out.Add(int64(len(b)))
	c.srv.traffic.sent.Add(1)
	if n := len(c.out); n > 0 {
		c.out[n-1].b = append(c.out[n-1].b, b...)
	} else {
		c.out = append(c.out, output{b: b})
	}
	c.mu.Unlock()
	c.poke()
}

// holdOutput delays all later output until the channel is closed.
func (c *conn) holdOutput(until <-chan struct{}) {
	c.mu.Lock()
	c.out = append(c.out, output{hold: until})
	c.blocked = true
	c.mu.Unlock()
}

// silence discards all later output.
func (c *conn) silence() {
	c.mu.Lock()
	c.mute = true
	c.mu.Unlock()
}

// finish closes the connection once the queued output is written.
func (c *conn) finish() {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.poke()
}

// hangUp is finish, but closes the connection at once if output is held back.
func (c *conn) hangUp() {
	c.mu.Lock()
	blocked := c.blocked
	c.mu.Unlock()
	if blocked {
		c.abort()
	} else {
		c.finish()
	}
}

func (c *conn) finishing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last || c.mute
}

// abort closes the connection at once.
func (c *conn) abort() {
	c.closeOnce.Do(func() {
		close(c.closed)
		_ = c.nc.Close()
	})
}

func (c *conn) poke() {
	select {
	case c.pending <- struct{}{}:
	default:
	}
}

// writeLoop writes until the connection is closed.
func (c *conn) writeLoop() {
	defer c.abort()
	for {
		next, ok := c.nextOutput()
		if !ok {
			return
		}
		if next.hold != nil {
			select {
			case <-next.hold:
				c.mu.Lock()
				c.blocked = false
				c.mu.Unlock()
			case <-c.closed:
				return
			}
		}
		if !c.srv.lockThawed() {
			return
		}
		c.srv.mu.Unlock()
		if _, err := c.nc.Write(next.b); err != nil {
			return
		}
	}
}

// nextOutput waits for output. It returns false when the connection is to end.
func (c *conn) nextOutput() (output, bool) {
	for {
		c.mu.Lock()
		if len(c.out) > 0 {
			next := c.out[0]
			c.out[0] = output{}
			c.out = c.out[1:]
			c.mu.Unlock()
			return next, true
		}
		c.out = nil
		last := c.last
		c.mu.Unlock()
		if last {
			return output{}, false
		}
		select {
		case <-c.pending:
		case <-c.closed:
			return output{}, false
		}
	}
}

// noZxid is in the header of an event that belongs to no transaction.
const noZxid = -1

// sendEvent queues a watch event. The caller holds the server's mutex, so the event
// precedes the reply to any request that sees the change. Since 3.9, the header has the id
// of the transaction that fired the watch.
func (c *conn) sendEvent(e eventType, path string, zxid int64) {
	const connected = 3
	if c.srv.profile.answers < Release39 {
		zxid = noZxid
	}
	f := newFrame()
	f.Int32(int32(e))
	f.Int32(connected)
	f.String(path)
	event := seal(f, -1, zxid, codeOK)
	c.later(func() { c.send(event) })
	c.srv.counters.WatchEvents++
}
