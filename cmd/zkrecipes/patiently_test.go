package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

// patiently runs a command with -timeout, until its output matches. The arguments are a
// pattern for the output, and the command. The timeout includes the start of the plugin and the time to connect, so on a busy
// machine it can be over before the tested wait begins. While no output matches, patiently
// repeats the command with twice the timeout, up to a minute. It returns the exit code of the last run.
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
		_ = command.Run() // the exit code is returned
		if timeout *= 2; want.Match(stdout.Bytes()) || want.Match(stderr.Bytes()) || timeout > time.Minute {
			os.Stdout.Write(stdout.Bytes())
			os.Stderr.Write(stderr.Bytes())
			return command.ProcessState.ExitCode()
		}
	}
}
