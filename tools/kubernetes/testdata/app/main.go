// Command app stands for the application in the pods of examples/kubernetes. It appends what it does
// to the file $APP_LOG, which all pods share. It works until the file $APP_DONE exists.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	token := os.Getenv("ZKRECIPES_TOKEN")
	switch os.Args[1] {
	case "serve":
		say("serves", token)
		<-terminated
		say("stops", token)
	case "report":
		say("reports", token)
		if !finish(terminated) {
			os.Exit(1)
		}
		say("has reported", token)
	case "send": // ends only when it has sent
		in := bufio.NewScanner(os.Stdin)
		in.Scan()
		say("sends", in.Text(), "attempt", os.Getenv("ZKRECIPES_ATTEMPT"))
		finish(nil)
		say("has sent", in.Text())
	}
}

// say appends a line, in one write.
func say(words ...any) {
	log, err := os.OpenFile(os.Getenv("APP_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = log.WriteString(os.Getenv("APP_POD") + " " + fmt.Sprintln(words...))
	}
	if err != nil {
		panic(err)
	}
	log.Close()
}

// finish works. It reports whether it has finished before a signal came.
func finish(terminated <-chan os.Signal) bool {
	for { // polls, because another process makes the file
		if _, err := os.Stat(os.Getenv("APP_DONE")); err == nil {
			return true
		}
		select {
		case <-terminated:
			return false
		case <-time.After(time.Millisecond):
		}
	}
}
