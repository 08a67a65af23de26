// Package workers has several processes, on several machines, run the same trials
// together. They find each other at a path in ZooKeeper. They begin and end each trial
// at a double barrier, and give what they measured to the first of them.
//
//  1. [Join] with a session that has no other use. Every worker is given a number.
//     Join returns when all are there and agree about what to run.
//  2. For each trial: [Crew.Begin] before its measured part, [Crew.End] after it,
//     and [Crew.Give] its record. The worker with number 1 gets all of them back.
//  3. [Crew.Finish] when all is done; [Crew.Close] in any case.
//
// All recipes are this project's own. A Group tells who is there. The records travel in
// its data, which is ephemeral: a run that dies leaves nothing behind. A DoubleBarrier
// is for beginning and ending together.
//
// # When a worker is missing
//
// Each has the time of Config.Patience to come to where the others wait. A worker
// whose session ends (its process died, or was interrupted) is noticed by a watch:
// at once if it closed it, else when its session timeout has passed. In either case
// the others end with an [AbsentError], which names who is missing.
package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Config describes a meeting of workers.
type Config struct {
	// Path is where the workers meet. One run at a time can meet there.
	Path string
	// Size is how many workers there are.
	Size int
	// About is this process to people: its host and its process id.
	About string
	// Experiment is what this worker is going to run, as text that is equal for
	// all workers of one run, and readable where it is not.
	Experiment string
	// Root is below what path the trials of this process would lie. All workers use
	// the first worker's.
	Root string
	// Patience is for how long a worker waits for others at each meeting.
	Patience time.Duration
}

// Crew is the workers of a run, as one of them sees it. Its methods are for one
// goroutine, but Context, Number and Root.
type Crew struct {
	cfg        Config
	number     int
	membership recipes.Membership
	group      recipes.Group
	barrier    recipes.DoubleBarrier // where trials begin and end
	given      recipes.DoubleBarrier // where parts are given

	hello   message
	crew    map[int]member // complete, as it was when all were there
	running recipes.Passage

	ctx  context.Context
	stop context.CancelCauseFunc
	done chan struct{} // closed when nobody watches any more
}

// Join makes this process the first worker that is not there yet, and returns when all
// are. The session should have no other use. Its timeout is how long the others take to
// notice that this process died. On an error the process is no worker.
func Join(ctx context.Context, s recipes.Recipes, cfg Config) (*Crew, error) {
	c := &Crew{cfg: cfg, done: make(chan struct{})}
	var err error
	if c.barrier, err = s.DoubleBarrier(cfg.Path+"/trial", recipes.DoubleBarrierConfig{Size: cfg.Size}); err != nil {
		return nil, err
	}
	if c.given, err = s.DoubleBarrier(cfg.Path+"/given", recipes.DoubleBarrierConfig{Size: cfg.Size}); err != nil {
		return nil, err
	}
	if err := c.take(ctx, s); err != nil {
		return nil, err
	}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	if err := c.roll(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Crew) take(ctx context.Context, s recipes.Recipes) error {
	c.hello = message{About: c.cfg.About, Experiment: c.cfg.Experiment, Root: c.cfg.Root}
	data, err := json.Marshal(c.hello)
	if err != nil {
		return err
	}
	for number := 1; number <= c.cfg.Size; number++ {
		group, err := s.Group(c.cfg.Path+"/workers", recipes.GroupConfig{Name: name(number)})
		if err != nil {
			return err
		}
		m, err := group.Join(ctx, data)
		if errors.Is(err, recipes.ErrNodeExists) {
			continue
		}
		if err != nil {
			return fmt.Errorf("join the workers at %s: %w", c.cfg.Path, err)
		}
		c.number, c.group, c.membership = number, group, m
		return nil
	}
	return fmt.Errorf("all %d places for workers at %s are taken: another run meets there, or one died a moment ago; give another path, or try again when its sessions have timed out",
		c.cfg.Size, c.cfg.Path)
}

// roll waits until all workers are there, and has the rest of their lives watched.
func (c *Crew) roll() error {
	views, err := c.group.Watch(c.ctx)
	if err != nil {
		close(c.done)
		return fmt.Errorf("watch the workers at %s: %w", c.cfg.Path, err)
	}
	var crew map[int]member
	var patience <-chan time.Time // with the others: it begins when this worker sees itself
	for len(crew) < c.cfg.Size {
		select {
		case members, ok := <-views:
			if !ok {
				close(c.done)
				return c.cause(c.ctx, errors.New("the session ended"))
			}
			if crew, err = crewOf(members, c.cfg.Size); err != nil {
				close(c.done)
				return err
			}
			if patience == nil {
				timer := time.NewTimer(c.cfg.Patience)
				defer timer.Stop()
				patience = timer.C
			}
		case <-patience:
			close(c.done)
			return c.absent(fmt.Sprintf("not all workers have come to %s within %v", c.cfg.Path, c.cfg.Patience), crew)
		}
	}
	c.crew = crew
	go c.watch(views)
	if err := c.agree(); err != nil {
		c.part(c.ctx) // so that all of them see all experiments
		return err
	}
	return nil
}

// watch ends the crew's context when one of the workers has gone.
func (c *Crew) watch(views <-chan []recipes.Member) {
	defer close(c.done)
	for members := range views {
		now, err := crewOf(members, c.cfg.Size)
		if err != nil {
			c.stop(err)
			return
		}
		for number, was := range c.crew {
			// One that came back under the same number is another.
			if now[number].token != was.token {
				delete(now, number)
			}
		}
		if len(now) < len(c.crew) {
			c.stop(c.absent("the run ends", now))
			return
		}
	}
	c.stop(errors.New("the session with which this worker meets the others has ended"))
}

// absent is about those who are not in present.
func (c *Crew) absent(when string, present map[int]member) *AbsentError {
	e := &AbsentError{When: when}
	for number := 1; number <= c.cfg.Size; number++ {
		m, there := present[number]
		switch was, known := c.crew[number]; {
		case there:
			e.Present = append(e.Present, m.describe(number))
		case known:
			e.Missing = append(e.Missing, was.describe(number))
		default:
			e.Missing = append(e.Missing, fmt.Sprintf("worker %d", number))
		}
	}
	return e
}

func (c *Crew) agree() error {
	first := c.crew[1]
	for number := 2; number <= c.cfg.Size; number++ {
		if m := c.crew[number]; m.Experiment != first.Experiment {
			return fmt.Errorf("the workers were told to run different experiments; start all with the same flags:\n%s: %s\n%s: %s",
				first.describe(1), first.Experiment, m.describe(number), m.Experiment)
		}
	}
	return nil
}

// Number is this worker's, from 1. Number 1 gets what the others give.
func (c *Crew) Number() int { return c.number }

// Root is where the trials of this run lie.
func (c *Crew) Root() string { return c.crew[1].Root }

// Workers describes all workers, in the order of their numbers.
func (c *Crew) Workers() (all []string) {
	for number := 1; number <= c.cfg.Size; number++ {
		all = append(all, c.crew[number].About)
	}
	return all
}

// Context ends when the context of Join does, or when a worker has gone; then its
// cause is an [AbsentError].
func (c *Crew) Context() context.Context { return c.ctx }

// message is the data of a member of the group: first who it is, later also what
// it measured.
type message struct {
	About      string `json:"about"`      // the process, for people
	Experiment string `json:"experiment"` // what it is going to run
	Root       string `json:"root"`
	Trial      int    `json:"trial,omitempty"`
	Part       []byte `json:"part,omitempty"` // see encode
}

func name(number int) string { return fmt.Sprintf("worker-%d", number) }

type member struct {
	message
	token recipes.Token
}

func (m member) describe(number int) string { return fmt.Sprintf("worker %d (%s)", number, m.About) }

// crewOf returns the workers among the members of the group, by number; those that
// are not there are absent from it.
func crewOf(members []recipes.Member, size int) (map[int]member, error) {
	crew := map[int]member{}
	for _, m := range members {
		for number := 1; number <= size; number++ {
			if m.Name != name(number) {
				continue
			}
			w := member{token: m.Token}
			if err := json.Unmarshal(m.Data, &w.message); err != nil {
				return nil, fmt.Errorf("%s is not a worker's: %w", m.Znode, err)
			}
			crew[number] = w
		}
	}
	return crew, nil
}

// AbsentError says that the run cannot go on, because not everybody is there.
type AbsentError struct {
	When    string   // such as "to begin"
	Missing []string // who is missing, as "worker 2"; with who that was, if it was ever there
	Present []string // who is there
}

func (e *AbsentError) Error() string {
	present := "nobody else is there"
	if len(e.Present) > 0 {
		present = "there are " + strings.Join(e.Present, ", ")
	}
	return fmt.Sprintf("%s: missing %s; %s", e.When, strings.Join(e.Missing, ", "), present)
}
