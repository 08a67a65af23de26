package record

import "golang.org/x/sys/unix"

// cpu names the processor as `go test` does.
func cpu() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
