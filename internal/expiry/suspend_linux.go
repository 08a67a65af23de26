package expiry

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	shortest = 10 * time.Millisecond
	// drifts is false because both clocks run at one rate: only a suspension moves them apart.
	drifts = false
)

// total first reads the clock that counts suspensions, and then the clock that stops during them.
// If other processes run between the two reads, or the machine is suspended there, the result is
// too small, and the next call returns more.
func total() time.Duration {
	boot := clock(unix.CLOCK_BOOTTIME)
	return boot - clock(unix.CLOCK_MONOTONIC)
}

func clock(id int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(id, &t) // fails for an unknown clock only; both are older than Go's least Linux
	return time.Duration(t.Nano())
}

// watch calls tell when the machine wakes, until end was called. A timer of the wall clock can be
// cancelled when that clock is set, and a resuming machine sets it. The timer costs nothing else.
func watch(tell func()) (end func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil || arm(fd) != nil {
		_ = unix.Close(fd)
		return func() {}
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	raw, err := timer.SyscallConn()
	if err != nil {
		_ = timer.Close()
		return func() {}
	}
	go func() {
		for buf := make([]byte, 8); ; {
			_, err := timer.Read(buf)
			if err != nil && !errors.Is(err, unix.ECANCELED) {
				return // closed
			}
			_ = raw.Control(func(fd uintptr) { _ = arm(int(fd)) })
			if err != nil {
				tell()
			}
		}
	}()
	return func() { _ = timer.Close() }
}

func arm(fd int) error {
	late := unix.ItimerSpec{Value: unix.NsecToTimespec(time.Now().AddDate(1, 0, 0).UnixNano())}
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &late, nil)
}
