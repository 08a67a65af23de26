package interop_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var rounds int // the last round in which this process took part

// mark creates a file of this process.
func (w witness) mark(name string) string {
	file := w.file(name + "-" + strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		broken(err)
	}
	return file
}

func (w witness) marks(name string) int {
	files, _ := filepath.Glob(w.file(name + "-*"))
	return len(files)
}

// takePart does the same as take_part of peer.py and, in the dialect of Curator, as takePart
// of Peer.java.
func (w witness) takePart(ctx context.Context, s recipes.Recipes, dialect recipes.Dialect, path string) error {
	b, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: peersOfAMatch, Dialect: dialect})
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(w.file("round")); err == nil && rounds == 0 {
		rounds, _ = strconv.Atoi(string(text))
	}
	rests := w.mark("rests")
	time.Sleep(5 * time.Millisecond)
	if err := os.Remove(rests); errors.Is(err, fs.ErrNotExist) {
		watchdog.Hang() // until the test kills it
	}
	for dialect == recipes.Curator && w.marks(fmt.Sprint("member-", rounds)) > 0 {
		time.Sleep(time.Millisecond)
	}
	rounds++
	member := w.mark(fmt.Sprint("member-", rounds))
	p, err := b.Enter(ctx, nil)
	if err != nil {
		return err
	}
	say("passed %d", w.marks(fmt.Sprint("member-", rounds)))
	inside, came, last := w.mark(fmt.Sprint("inside-", rounds)), w.mark(fmt.Sprint("came-", rounds)), w.mark("last")
	if err := errors.Join(os.WriteFile(last, strconv.AppendInt(nil, int64(rounds), 10), 0o600), os.Rename(last, w.file("round"))); err != nil {
		return err
	}
	for w.marks(fmt.Sprint("came-", rounds)) < peersOfAMatch {
		time.Sleep(time.Millisecond)
	}
	if err := os.Remove(inside); err != nil {
		return err
	}
	if err := p.Leave(ctx); err != nil {
		return err
	}
	say("left %d", w.marks(fmt.Sprint("inside-", rounds)))
	return errors.Join(os.Remove(came), os.Remove(member))
}
