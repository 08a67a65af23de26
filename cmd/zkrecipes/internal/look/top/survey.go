package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	gopath "path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// survey reads the znodes below a root, in rounds. It keeps what it has read, so that a line whose
// listing has not changed costs one request a round.
type survey struct {
	root  string
	asker asker

	znodes    map[string]*znode
	histories map[key]*history
	rounds    int
	took      time.Duration // the last round
	cycles    []cycle       // after the last round
}

// client is what a survey needs of a session.
type client interface {
	ID() int64
	Timeout() time.Duration
	Children(ctx context.Context, path string) ([]string, error)
	Contenders(ctx context.Context, path string, kinds ...recipes.Kind) (recipes.Lines, error)
}

// znode is a path that may have contenders.
type znode struct {
	names      []string
	full       time.Time // when the contenders were read
	lines      []*line
	search     []string // children that may have contenders
	unreadable error
}

// snapshot is the state of a survey. It does not change.
type snapshot struct {
	root       string
	lines      []*line // by path
	cycles     []cycle
	sessions   *sessions
	searched   int // paths
	unreadable int
	failed     error // the error of one unreadable path
	rounds     int   // complete rounds
	whole      bool  // this is the end of a round
	took       time.Duration
}

func newSurvey(root string, a asker) *survey {
	return &survey{root: root, asker: a, znodes: map[string]*znode{}, histories: map[key]*history{}}
}

const (
	// reread is the time after which contenders are read again although the listing is the same.
	// Only their data can have changed.
	reread = time.Minute
	// partial is the time between two snapshots of a round.
	partial = time.Second
)

// round reads all paths once. It calls show in between and at the end. It returns an error of show,
// of ctx or of the session, or the error of reading the root.
func (s *survey) round(ctx context.Context, c client, show func(*snapshot) error) error {
	began := time.Now()
	shown := began
	found := map[string]bool{}
	for next := []string{s.root}; len(next) > 0; next = next[1:] {
		path := next[0]
		z, err := s.visit(ctx, c, path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, recipes.ErrNoNode) && path == s.root && s.rounds == 0:
			return exit.Usage("%w", err)
		case err != nil && path == s.root && s.rounds == 0, ended(err):
			return err
		case errors.Is(err, recipes.ErrNoNode):
			continue // the znode was deleted after its parent was listed
		case err != nil:
			z = &znode{unreadable: err}
		}
		s.znodes[path], found[path] = z, true
		for _, name := range z.search {
			next = append(next, gopath.Join(path, name))
		}
		if time.Since(shown) >= partial {
			s.asker.ask(ctx, c.ID(), c.Timeout())
			if err := show(s.snapshot(false)); err != nil {
				return err
			}
			shown = time.Now()
		}
	}
	maps.DeleteFunc(s.znodes, func(path string, _ *znode) bool { return !found[path] })
	maps.DeleteFunc(s.histories, func(k key, h *history) bool { return h.read.Before(began.Add(-2 * window)) })
	if err := s.deadlocks(ctx, c); err != nil {
		return err
	}
	s.rounds++
	s.took = time.Since(began)
	s.asker.ask(ctx, c.ID(), c.Timeout())
	return show(s.snapshot(true))
}

// ended reports whether err ends the round, and not only the reading of one path.
func ended(err error) bool {
	return errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrUnavailable) || errors.Is(err, recipes.ErrUnsupported)
}

// visit reads a path: its children, and if necessary its contenders.
func (s *survey) visit(ctx context.Context, c client, path string) (*znode, error) {
	names, err := c.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	before := s.znodes[path]
	if before != nil && before.unreadable == nil && slices.Equal(before.names, names) && now.Sub(before.full) < reread && !slices.ContainsFunc(before.lines, (*line).mutable) {
		z := *before
		z.lines = nil
		for _, l := range before.lines {
			same := *l
			same.read = now
			s.record(&same)
			z.lines = append(z.lines, &same)
		}
		return &z, nil
	}
	z := &znode{names: names, full: now}
	if len(names) > 0 {
		if z.lines, err = s.read(ctx, c, path); err != nil {
			return nil, err
		}
	}
	for _, l := range z.lines {
		s.record(l)
	}
	z.search = searched(path, names, z.lines)
	return z, nil
}

func (s *survey) read(ctx context.Context, c client, path string) ([]*line, error) {
	lines, err := c.Contenders(ctx, path)
	if err != nil {
		return nil, err
	}
	return linesOf(path, lines, time.Now()), nil
}

func (s *survey) record(l *line) {
	h := s.histories[l.key]
	if h == nil {
		h = &history{}
		s.histories[l.key] = h
	}
	h.add(l)
}

// sequential matches names that end with a sequence number, and protected names. Numbers from
// 1,000,000,000 on have no leading zero: such a znode costs a request, and has no children.
var sequential = regexp.MustCompile(`^_c_|[^0-9]0[0-9]{9}$`)

// searched returns the children that may be the paths of contenders.
func searched(path string, names []string, lines []*line) (search []string) {
	known := map[string]bool{"acks": true} // the acknowledgements of an election
	for _, l := range lines {
		for _, c := range l.contenders {
			known[gopath.Base(c.Znode)] = true
		}
		if l.kind == recipes.KindSemaphore && l.dialect == recipes.Curator {
			known["leases"], known["locks"] = true, true
		}
	}
	for _, name := range names {
		// PATH-__lock__ orders the contenders of kazoo's semaphore at PATH.
		of, ordering := strings.CutSuffix(name, "-__lock__")
		if known[name] || sequential.MatchString(name) || ordering && slices.Contains(names, of) || recipes.ValidatePath(gopath.Join(path, name)) != nil {
			continue
		}
		search = append(search, name)
	}
	return search
}

// deadlocks finds cycles, and reads their lines again to confirm them. A line that cannot be
// read again confirms nothing: the next round reports it.
func (s *survey) deadlocks(ctx context.Context, c client) error {
	suspects := cycles(s.all())
	var again []*line
	read := map[string]bool{}
	for _, suspect := range suspects {
		for _, e := range suspect {
			if read[e.line.path] {
				continue
			}
			read[e.line.path] = true
			lines, err := s.read(ctx, c, e.line.path)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case ended(err):
				return err
			}
			again = append(again, lines...)
		}
	}
	s.cycles = confirmed(suspects, again)
	return nil
}

func (s *survey) all() (all []*line) {
	for _, z := range s.znodes {
		all = append(all, z.lines...)
	}
	slices.SortFunc(all, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind), cmp.Compare(a.dialect, b.dialect))
	})
	return all
}

func (s *survey) snapshot(whole bool) *snapshot {
	n := &snapshot{root: s.root, lines: s.all(), cycles: s.cycles, sessions: s.asker.last, searched: len(s.znodes), rounds: s.rounds, whole: whole, took: s.took}
	if n.sessions == nil {
		n.sessions = &sessions{}
	}
	for path, z := range s.znodes {
		if z.unreadable != nil {
			n.unreadable++
			n.failed = fmt.Errorf("%s: %w", path, z.unreadable)
		}
	}
	return n
}

// read returns the times of the newest and of the oldest reading, or zero times without lines.
func (n *snapshot) read() (newest, oldest time.Time) {
	for i, l := range n.lines {
		if l.read.After(newest) {
			newest = l.read
		}
		if i == 0 || l.read.Before(oldest) {
			oldest = l.read
		}
	}
	return newest, oldest
}
