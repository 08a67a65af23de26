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

// interruptAtFirstResult runs a command, interrupts it when it has printed its first
// benchmark line, and returns its exit code.
func interruptAtFirstResult(args []string) int {
	return atFirstResult(args, func(p *os.Process) {
		if err := p.Signal(os.Interrupt); err != nil {
			panic(err)
		}
	})
}

// hangupAtFirstResult is interruptAtFirstResult with SIGHUP, again and again until the
// command has ended: two that come at once would be one.
func hangupAtFirstResult(args []string) int {
	return atFirstResult(args, func(p *os.Process) {
		go func() {
			for p.Signal(syscall.SIGHUP) == nil {
				time.Sleep(time.Millisecond)
			}
		}()
	})
}

// atFirstResult runs a command, calls do when it has printed its first benchmark
// line, and returns its exit code.
func atFirstResult(args []string, do func(*os.Process)) int {
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
			do(cmd.Process)
			break
		}
	}
	if _, err := io.Copy(os.Stdout, lines); err != nil {
		panic(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
