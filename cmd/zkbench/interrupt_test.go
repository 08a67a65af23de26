package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// interruptAtFirstResult runs a command, sends it the signal when it has printed its
// first benchmark line, and returns its exit code. SIGHUP it sends until the command
// has ended.
func interruptAtFirstResult(with os.Signal, args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		fmt.Print(line)
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "Benchmark") {
			if err := cmd.Process.Signal(with); err != nil {
				panic(err)
			}
			break
		}
	}
	if with == syscall.SIGHUP {
		go func() {
			for cmd.Process.Signal(with) == nil {
				time.Sleep(time.Millisecond) // or two would be one
			}
		}()
	}
	if _, err := io.Copy(os.Stdout, lines); err != nil {
		panic(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
