package relay

import "bytes"

// Drop breaks all connections, and what is held of them is gone. New ones are accepted.
func (r *Relay) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

// Refuse breaks all connections and accepts no others.
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

// Hold passes nothing on, in both directions, and drops nothing. A relay with a [Delay]
// cannot hold.
func (r *Relay) Hold() { r.hold(up, down) }

// HoldReplies passes on only what goes to the server.
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

// Restore ends what Refuse, Hold and HoldReplies have begun.
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

// pass waits until nothing holds back what goes that way.
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

// Greeting is what the first read of the latest connection has brought. A relay with a
// Delay keeps none.
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
