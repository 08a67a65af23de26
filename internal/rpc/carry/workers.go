package carry

import "sync"

// maxWorkers bounds the goroutines that are kept for the next calls.
const maxWorkers = 16

// workers make calls, each in its own goroutine. A goroutine is reused after its call,
// because its stack has grown to the needed size.
type workers struct {
	mu      sync.Mutex
	idle    []chan task // do takes the last, which was busy most recently
	over    bool
	running sync.WaitGroup
}

// do makes a call without waiting for it.
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
	next <- t // never blocks: it has room for one
}

func (w *workers) work(t task) {
	var next chan task // made after the first call, which may wait long
	for ok := true; ok; t, ok = <-next {
		t.run()
		t = task{} // keep nothing of it alive
		if next == nil {
			next = make(chan task, 1)
		}
		if !w.rest(next) {
			return
		}
	}
}

// rest makes do send the next call to a worker, unless there are enough.
func (w *workers) rest(next chan task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.idle) == maxWorkers {
		return false
	}
	w.idle = append(w.idle, next)
	return true
}

// wait waits for the running calls. The caller makes no more.
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
