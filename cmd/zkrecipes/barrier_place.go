package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierPlaceVerb puts a barrier in place.
type barrierPlaceVerb struct{ path, data string }

func (v *barrierPlaceVerb) describe() (arguments, synopsis, help string) {
	return "barrier place [flags] PATH", "Put a barrier in place", `
Puts a barrier in place: whoever waits at PATH with zkrecipes barrier wait, or in
any program that follows ZooKeeper's recipe, waits until somebody removes it. The
barrier is the znode PATH itself. It stays when zkrecipes has ended. If it is in
place already, that is no error, and its data stays.

` + onceCodes
}

func (v *barrierPlaceVerb) flags(f *flag.FlagSet) {
	f.StringVar(&v.data, "data", "", "`text` for people who look at the znode: why do we wait; by default who placed it")
}

func (v *barrierPlaceVerb) arguments(args []string) (err error) {
	if v.data == "" {
		host, _ := os.Hostname()
		v.data = fmt.Sprintf("placed by %s[%d]", host, os.Getpid())
	}
	v.path, err = barrierPath(args)
	return err
}

func barrierPath(args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("give one PATH, after the flags")
	}
	if args[0] == "/" {
		return "", errors.New("the root is always there, and so is no barrier")
	}
	return args[0], recipes.ValidatePath(args[0])
}

func (v *barrierPlaceVerb) otherwise() int { return exitFailed }

func (v *barrierPlaceVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		b, err := s.Barrier(v.path)
		if err != nil {
			return err
		}
		if err := b.Set(ctx, []byte(v.data)); err != nil {
			return err
		}
		return out.barrier(v.path, true)
	})
}

// barrier says how a barrier is.
func (o *output) barrier(path string, placed bool) error {
	return o.done(struct {
		Path   string `json:"path"`
		Placed bool   `json:"placed"`
	}{path, placed})
}
