// Command child is what a test of the image runs in a container, where there is no shell.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "wait": // until TERM
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		_, err := os.Create("/file")
		fmt.Printf("user %d:%d, read-only %t\n", os.Getuid(), os.Getgid(), errors.Is(err, syscall.EROFS))
		<-terminated
		os.Exit(7)
	case "leave": // leaves a process without a parent, and waits until it is collected
		orphan, err := exec.Command(os.Args[0], "parent").Output()
		if err != nil {
			panic(err)
		}
		for { // polls, because it is no child of this process
			if _, err := os.Stat("/proc/" + string(orphan)); errors.Is(err, fs.ErrNotExist) {
				fmt.Println("collected")
				return
			}
			time.Sleep(time.Millisecond)
		}
	case "parent":
		orphan := exec.Command(os.Args[0], "orphan")
		if err := orphan.Start(); err != nil {
			panic(err)
		}
		fmt.Print(orphan.Process.Pid)
	case "orphan": // ends as one
		for os.Getppid() != 1 {
			time.Sleep(time.Millisecond)
		}
	}
}
