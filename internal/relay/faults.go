package relay

import "bytes"

// Drop breaks all connections, and discards the bytes that are held back. New connections
// are accepted.
func (r *Relay) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

// Refuse breaks all connections and refuses new ones.
func (r *Relay) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = true
	r.drop()
}

func (r *Relay) drop() {
	for conn := range r.conns {
		conn.Close()
	}
}

// Hold holds back all bytes, in both directions, without breaking connections. A relay with
// a [Delay] cannot hold.
func (r *Relay) Hold() { r.hold(up, down) }

// HoldReplies holds back the bytes to the clients.
func (r *Relay) HoldReplies() { r.hold(down) }

func (r *Relay) hold(ways ...way) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range ways {
		if r.gates[w] == nil {
			r.gates[w] = make(chan struct{})
		}
	}
}

// Restore ends the effect of Refuse, Hold and HoldReplies.
func (r *Relay) Restore() {
	r.mu.Lock()
	r.refusing = false
	r.mu.Unlock()
	r.open()
}

func (r *Relay) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, gate := range r.gates {
		if gate != nil {
			close(gate)
			r.gates[w] = nil
		}
	}
}

// pass waits while bytes in that direction are held back.
func (r *Relay) pass(w way) {
	for {
		r.mu.Lock()
		gate := r.gates[w]
		r.mu.Unlock()
		if gate == nil {
			return
		}
		<-gate
	}
}

// Greeting returns the bytes that the server sent first on the latest connection. A relay
// with a Delay does not keep them.
func (r *Relay) Greeting() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.greeting
}

func (r *Relay) greet(said []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.greeting = bytes.Clone(said)
}
