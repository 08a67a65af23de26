package record

import "golang.org/x/sys/unix"

// cpu returns the name of the processor, as `go test` prints it.
func cpu() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
