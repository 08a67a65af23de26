package verb

import (
	"context"
	"flag"
	"io"
	gopath "path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// CompletionTime bounds the completion of PATH, because the user waits for it at the prompt.
const CompletionTime = 300 * time.Millisecond

// Completion returns what completes the flags and arguments of the verb.
func (c *Command) Completion() complete.Command {
	return complete.Command{Flags: c.flags(), Args: c.arguments()}
}

// arguments completes PATH from the servers.
func (c *Command) arguments() complete.Predictor {
	if !strings.Contains(" "+c.Usage, " PATH") && !strings.Contains(c.Usage, "[ROOT]") {
		return complete.PredictNothing
	}
	return complete.PredictFunc(func(a complete.Args) []string { return c.paths(a.Completed, a.Last) })
}

// paths returns the paths that begin with word, the first argument after the flags. It
// returns none if the servers do not answer in time.
func (c *Command) paths(before []string, word string) []string {
	f := c.FlagSet()
	f.Init("", flag.ContinueOnError)
	if !strings.HasPrefix(word, "/") || slices.Contains(before, "--") ||
		f.Parse(before) != nil || f.NArg() > 0 || c.where.apply(f) != nil {
		return nil
	}
	quiet := *c.Tool
	quiet.where, quiet.Stdout, quiet.Stderr = c.where, io.Discard, io.Discard
	dir := gopath.Dir(word) // of "/a/" it is "/a"
	var found []string
	for _, name := range quiet.children(dir) {
		if path := gopath.Join(dir, name); strings.HasPrefix(path, word) && recipes.ValidatePath(path) == nil {
			found = append(found, path)
		}
	}
	return found
}

// ofRecipes matches znodes that recipes create below a path.
var ofRecipes = regexp.MustCompile(`^_c_|-?[0-9]{10}$`)

// children returns the names of the znodes below path, without those of recipes.
func (t *Tool) children(path string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), CompletionTime)
	defer cancel()
	answered := make(chan []string, 1)
	go func() { // ends within the time, or with this process
		defer close(answered)
		c := &connection{Tool: t}
		answered <- c.children(ctx, path)
		if c.plugin != nil {
			_ = c.plugin.Close(ctx)
		}
	}()
	var found []string
	for {
		select {
		case names, more := <-answered:
			if !more {
				return found
			}
			found = names
		case <-ctx.Done():
			return found
		}
	}
}

func (c *connection) children(ctx context.Context, path string) []string {
	s, err := c.open(ctx)
	if err != nil {
		return nil
	}
	names, err := s.Children(ctx, path)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, ofRecipes.MatchString)
}
