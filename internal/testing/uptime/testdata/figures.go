package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
)

// init serves the figures of this process to the test, on a socket whose name is the number of the
// process. The figures are followed by the stacks of all goroutines.
func init() {
	dir := os.Getenv("FIGURES")
	if dir == "" {
		return
	}
	l, err := net.Listen("unix", filepath.Join(dir, fmt.Sprint(os.Getpid())))
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				panic(err)
			}
			runtime.GC()
			debug.FreeOSMemory() // collects again, which frees what pools have kept in the first collection
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_ = json.NewEncoder(conn).Encode(struct {
				Goroutines int
				Heap       uint64
			}{runtime.NumGoroutine(), m.HeapAlloc})
			_ = pprof.Lookup("goroutine").WriteTo(conn, 1) // until the test closes the connection
			_ = conn.Close()
		}
	}()
}
