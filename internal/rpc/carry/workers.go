package carry

import "sync"

// maxWorkers is how many goroutines are kept for the next calls.
const maxWorkers = 16

// workers make calls, each in a goroutine of its own. A goroutine that has made one
// makes another: its stack has grown to what a call needs.
type workers struct {
	mu      sync.Mutex
	idle    []chan task // the last one was busy last
	over    bool
	running sync.WaitGroup
}

// do makes a call. It does not wait for it.
func (w *workers) do(t task) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.mu.Unlock()
		w.running.Go(func() { w.work(t) })
		return
	}
	next := w.idle[n]
	w.idle = w.idle[:n]
	w.mu.Unlock()
	next <- t // never waits: it has room for one
}

func (w *workers) work(t task) {
	var next chan task // made when it is needed: a call may wait for long
	for ok := true; ok; t, ok = <-next {
		t.run()
		t = task{} // nothing of it is kept
		if next == nil {
			next = make(chan task, 1)
		}
		if !w.rest(next) {
			return
		}
	}
}

// rest has do send the next call to a worker, unless there are enough.
func (w *workers) rest(next chan task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.idle) == maxWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// wait waits for the calls that are being made. No more may be made.
func (w *workers) wait() {
	w.mu.Lock()
	w.over = true
	for _, next := range w.idle {
		close(next)
	}
	w.idle = nil
	w.mu.Unlock()
	w.running.Wait()
}
