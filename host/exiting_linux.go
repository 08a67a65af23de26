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

// flagExiting is PF_EXITING of Linux's include/linux/sched.h, among the flags in
// /proc/PID/stat. Each thread has it set before it closes its files.
const flagExiting = 0x4

// exiting reports whether a process that was not waited for is exiting or has exited, if
// the system tells.
func exiting(pid int) (yes, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // it was waited for while it was looked at
		return true, true
	}
	if errors.Is(err, fs.ErrNotExist) { // it was waited for before, or there is no /proc
		_, mounted := os.Stat("/proc/self/stat")
		return mounted == nil, mounted == nil
	}
	if err != nil {
		return false, false
	}
	return saysExiting(stat)
}

// saysExiting reads /proc/PID/stat. known is false on a system that only resembles Linux.
func saysExiting(stat []byte) (yes, known bool) {
	// The name, in parentheses, may have spaces and parentheses.
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
