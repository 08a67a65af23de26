package partition

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	deviceName = "tun0"
	maxPacket  = 64 << 10
)

// Host is one network namespace. It lives as long as its files are open.
type Host struct {
	addr      netip.Addr
	device    *os.File // the other end of the host's only link
	namespace *os.File
}

// IP returns the host's address.
func (h *Host) IP() string { return h.addr.String() }

// newHost creates a namespace with a loopback device and a TUN device with address addr.
func newHost(addr netip.Addr) (*Host, error) {
	h := &Host{addr: addr}
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return h.setUp()
	})
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// onOwnThread runs f on a thread of its own. f may change the namespace of the thread, which
// ends after f.
func onOwnThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // without an unlock, the runtime ends the thread
		result <- f()
	}()
	return <-result
}

func (h *Host) setUp() (err error) {
	if h.namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	if h.device, err = openDevice(); err != nil {
		return err
	}
	return configure(h.addr)
}

// openDevice creates the TUN device of the current namespace.
func openDevice() (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	request, err := unix.NewIfreq(deviceName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make a TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil // only now: the poller needs a configured device
}

// configure sets the address of the TUN device in a /24 network, and turns on the TUN and
// the loopback device.
func configure(addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	four := addr.As4()
	for _, set := range []struct {
		device  string
		request uint
		value   func(*unix.Ifreq) error
	}{
		{deviceName, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(four[:]) }},
		{deviceName, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }},
		{deviceName, unix.SIOCSIFFLAGS, up},
		{"lo", unix.SIOCSIFFLAGS, up},
	} {
		request, err := unix.NewIfreq(set.device)
		if err == nil {
			err = set.value(request)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, set.request, request)
		}
		if err != nil {
			return fmt.Errorf("configure %s: %w", set.device, err)
		}
	}
	return nil
}

func up(r *unix.Ifreq) error {
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return nil
}

// Do runs f in the host's network, on the current thread. Processes that f starts and
// connections that it makes belong to that network.
func (h *Host) Do(f func() error) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	if err := unix.Setns(int(h.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("partition: enter the network of %s: %w", h.addr, err)
	}
	result := f()
	if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
		// The thread stays locked and ends with its goroutine, so that no other
		// goroutine runs in the wrong network.
		return errors.Join(result, fmt.Errorf("partition: leave the network of %s: %w", h.addr, err))
	}
	runtime.UnlockOSThread()
	return result
}

func (h *Host) close() error {
	var errs []error
	for _, f := range []*os.File{h.device, h.namespace} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
