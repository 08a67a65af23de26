package host_test

import (
	"fmt"
	"os"
)

// badPlugin is a plugin with a defect that its role names.
func badPlugin() {
	fmt.Fprintln(os.Stderr, "unknown role")
	os.Exit(3)
}

func runHost() {}
