package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// killedCommand is a command whose child does work that needs the lock. Its argument says what
// the command kills: zkrecipes, zkrecipes and itself, or the plugin.
const killedCommand = `
work() {
	mine=
	trap 'test "$mine" && rm witness; echo >>ended; exit' TERM # zkrecipes lost the lock: it has taken too long
	if (set -C; : >witness) 2>/dev/null; then
		mine=yes
		sleep 0.1 # the work
		mine=
		rm witness
	else
		echo "$0" >>second
	fi
	echo >>ended
}
work >work.log 2>&1 &
case $0 in
zkrecipes) kill -9 $PPID ;;
both) kill -9 $PPID $$ ;;
plugin)
	for stat in /proc/[0-9]*/stat; do
		read -r id name state parent rest <$stat || continue
		case $name in
		"(zkrecipes-plug"*) test "$parent" = $PPID && kill -9 $id ;;
		esac
	done 2>/dev/null ;;
esac
wait
`

// TestNoSecondHolderWhenFiftyAreKilled runs fifty commands at a time. The child of each
// command continues after the command, zkrecipes or the plugin was killed. The witness is a
// file that is created exclusively.
func TestNoSecondHolderWhenFiftyAreKilled(t *testing.T) {
	commands := 50
	if testing.Short() {
		commands = 9
	}
	s := must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Hour}))(t)
	defer s.Close()
	dir := t.TempDir()
	var running sync.WaitGroup
	for i := range commands {
		victim := []string{"zkrecipes", "both", "plugin"}[i%3]
		cmd := exec.Command("zkrecipes", "lock", "/l", "--", "sh", "-c", killedCommand, victim)
		cmd.Dir = dir
		// The session timeout is long, so that a killed plugin is replaced in time on a busy machine.
		cmd.Env = append(os.Environ(), "ZKRECIPES_SERVERS="+s.Addr(), "ZKRECIPES_SESSION_TIMEOUT=5m", "ZKRECIPES_LOG_LEVEL=error", "GORACE="+quickExit, "HOME="+dir)
		must.Do(t, cmd.Start())
		running.Go(func() {
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Error(err)
			}
		})
	}
	running.Wait()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	for strings.Count(read("ended"), "\n") < commands || len(s.Sessions()) > 0 { // polls, because they are not children of this process
		time.Sleep(5 * time.Millisecond)
	}
	if second := strings.Fields(read("second")); len(second) > 0 {
		t.Errorf("%d of %d were not alone, after a kill of %q", len(second), commands, second)
	}
	if n := strings.Count(read("ended"), "\n"); n != commands {
		t.Error(strconv.Itoa(n) + " commands have run")
	}
}
