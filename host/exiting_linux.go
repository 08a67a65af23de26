package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// flagExiting is PF_EXITING of Linux's include/linux/sched.h, one of the flags in
// /proc/PID/stat. A thread sets it before it closes its files.
const flagExiting = 0x4

// exiting reports whether a process is exiting or has exited, even before it was waited
// for. known is false if the system does not say.
func exiting(pid int) (yes, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // the process was waited for during the read
		return true, true
	}
	if errors.Is(err, fs.ErrNotExist) { // the process was waited for before, or there is no /proc
		_, mounted := os.Stat("/proc/self/stat")
		return mounted == nil, mounted == nil
	}
	if err != nil {
		return false, false
	}
	return parseExiting(stat)
}

// parseExiting reads /proc/PID/stat. known is false on a system that emulates Linux.
func parseExiting(stat []byte) (yes, known bool) {
	// The process name, in parentheses, can contain spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, flags = 0, 6
	if len(fields) <= flags {
		return false, false
	}
	bits, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	if err != nil || bits == 0 {
		return false, false
	}
	return bits&flagExiting != 0 || bytes.ContainsAny(fields[state], "ZX"), true
}
