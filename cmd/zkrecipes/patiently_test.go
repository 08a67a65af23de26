package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

// patiently runs a command with -timeout, given as COMMAND ... after a pattern of what
// it writes. The time includes the plugin's start and the connecting. On a busy machine
// all of it can be over before what is tested begins. As long as nothing matches, the
// command is run again with twice the time. Its exit code is that of the last run.
func patiently(args []string) int {
	want, args := regexp.MustCompile("(?m)"+args[0]), slices.Clone(args[1:])
	at := slices.Index(args, "-timeout") + 1
	timeout, err := time.ParseDuration(args[at])
	if at == 0 || err != nil {
		panic(err)
	}
	for {
		args[at] = timeout.String()
		command := exec.Command(args[0], args[1:]...)
		var stdout, stderr bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, &stdout, &stderr
		_ = command.Run() // the exit code tells
		if timeout *= 2; want.Match(stdout.Bytes()) || want.Match(stderr.Bytes()) || timeout > time.Minute {
			os.Stdout.Write(stdout.Bytes())
			os.Stderr.Write(stderr.Bytes())
			return command.ProcessState.ExitCode()
		}
	}
}
