package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierSetVerb sets a barrier.
type barrierSetVerb struct {
	exitCodeOnly
	path, data string
}

func (v *barrierSetVerb) describe() doc {
	return doc{
		usage:    "barrier set [flags] PATH",
		synopsis: "Set a barrier, at which others wait",
		about: `
Sets the barrier at PATH. Whoever waits at PATH waits until somebody removes it.
`,
		examples: [2]string{
			"zkrecipes barrier set /releases/next",
			"zkrecipes barrier set -data 'until the backup is done' /releases/next",
		},
		rules: `
Others wait with zkrecipes barrier wait, or in any program that follows ZooKeeper's
recipe. The barrier is the znode PATH itself. It stays when zkrecipes has ended. A
barrier that is set already is no error, and keeps its data.

` + onceCodes,
	}
}

func (v *barrierSetVerb) flags(f *flag.FlagSet) {
	f.StringVar(&v.data, "data", "", "`text` for people who look at the znode: why to wait; by default who has set it")
}

func (v *barrierSetVerb) arguments(args []string) (err error) {
	if v.data == "" {
		host, _ := os.Hostname()
		v.data = fmt.Sprintf("set by %s[%d]", host, os.Getpid())
	}
	v.path, err = barrierPath(args)
	return err
}

func barrierPath(args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("give one PATH, after the flags")
	}
	if args[0] == "/" {
		return "", errors.New("/ cannot be a barrier: it always exists")
	}
	return args[0], recipes.ValidatePath(args[0])
}

func (v *barrierSetVerb) otherwise() int { return exitFailed }

func (v *barrierSetVerb) run(ctx context.Context, t *tool, out *output) error {
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

// barrier says whether a barrier is set.
func (o *output) barrier(path string, set bool) error {
	return o.done(struct {
		Path string `json:"path"`
		Set  bool   `json:"set"`
	}{path, set})
}
