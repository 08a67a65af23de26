package bench

import (
	"fmt"
	"os"
	"strconv"
)

// rss returns the resident memory of a process in bytes, 0 if it cannot be read.
// Process 0 is this one.
func rss(pid int) int64 {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	statm, err := os.ReadFile("/proc/" + name + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
