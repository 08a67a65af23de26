// Package workers lets several processes, on several machines, run the same trials together.
// The processes, called workers, meet at a path in ZooKeeper. They begin and end each trial at
// a double barrier, and give their records to the first worker.
//
//  1. [Join] with a session that has no other use. It assigns a number to the worker, and returns
//     when all workers have joined and agree about the experiment.
//  2. For each trial: [Crew.Begin] before its measured part, [Crew.End] after it, and
//     [Crew.Give] with its record. Worker 1 gets all records back.
//  3. [Crew.Finish] at the end of the run; [Crew.Close] in any case.
//
// Workers use this project's own recipes. A Group has the workers as members, and their
// records as its data, which is ephemeral: a run that dies leaves nothing behind. Double
// barriers synchronize the workers.
//
// # Missing workers
//
// If a worker does not come to a meeting within Config.Patience, the others return an error.
// They also watch the Group. If a worker leaves it, because its process was interrupted or
// died, they end with an error that names it. A process that died leaves the Group
// when its session times out.
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
	// Path is the znode below which the workers meet. Only one run at a time can meet there.
	Path string
	// Size is how many workers there are.
	Size int
	// About describes this process in messages: its host and its process id.
	About string
	// Experiment describes what this worker will run. The text must be equal for all
	// workers of a run. If it differs, the error contains both texts.
	Experiment string
	// Root is this worker's path for trials. All workers use that of worker 1.
	Root string
	// Patience is how long a worker waits for others at each meeting.
	Patience time.Duration
}

// Crew is one worker's view of the workers of a run. Only Context, Number and Root may be
// called by several goroutines.
type Crew struct {
	cfg        Config
	number     int
	membership recipes.Membership
	group      recipes.Group
	barrier    recipes.DoubleBarrier // entered when a trial begins, left when it ends
	given      recipes.DoubleBarrier // entered with a record, left when worker 1 has all

	hello   message
	crew    map[int]member // all workers, as of Join
	running recipes.Passage

	ctx  context.Context
	stop context.CancelCauseFunc
	done chan struct{} // closed when watch has returned, or was not started
}

// Join takes the first free number, and returns when all workers have joined. The session
// should have no other use: if this process dies, the others notice it after the session's
// timeout. On error the process is not a worker.
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
	if err := c.gather(); err != nil {
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
	return fmt.Errorf("all numbers of workers (%d) at %s are taken by another run, or by one that has just died; give another path, or try again after its session timeout",
		c.cfg.Size, c.cfg.Path)
}

// gather waits until all workers have joined, and then starts to watch them.
func (c *Crew) gather() error {
	views, err := c.group.Watch(c.ctx)
	if err != nil {
		err = fmt.Errorf("watch the workers at %s: %w", c.cfg.Path, err)
	} else {
		err = c.await(views)
	}
	if err != nil {
		close(c.done)
		return err
	}
	go c.watch(views)
	if err := c.agree(); err != nil {
		c.awaitLeavers(c.ctx) // so that all workers can compare all experiments
		return err
	}
	return nil
}

// await reads views until one has all workers. Its patience begins with the first view.
func (c *Crew) await(views <-chan []recipes.Member) error {
	var crew map[int]member
	var patience <-chan time.Time
	for len(crew) < c.cfg.Size {
		select {
		case members, ok := <-views:
			if !ok {
				return c.cause(c.ctx, errors.New("the session ended"))
			}
			var err error
			if crew, err = crewOf(members, c.cfg.Size); err != nil {
				return err
			}
			if patience == nil {
				patience = time.After(c.cfg.Patience)
			}
		case <-patience:
			return c.absent(fmt.Sprintf("not all workers have come to %s within %v", c.cfg.Path, c.cfg.Patience), crew)
		}
	}
	c.crew = crew
	return nil
}

func (c *Crew) watch(views <-chan []recipes.Member) {
	defer close(c.done)
	for members := range views {
		now, err := crewOf(members, c.cfg.Size)
		if err != nil {
			c.stop(err)
			return
		}
		for number, was := range c.crew {
			// With another token, another process has taken the number since.
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

// absent returns the error for the workers that are not in present. It names both.
func (c *Crew) absent(when string, present map[int]member) error {
	var there, missing []string
	for number := 1; number <= c.cfg.Size; number++ {
		m, ok := present[number]
		switch was, known := c.crew[number]; {
		case ok:
			there = append(there, m.describe(number))
		case known:
			missing = append(missing, was.describe(number))
		default:
			missing = append(missing, fmt.Sprintf("worker %d", number))
		}
	}
	if len(there) == 0 {
		there = []string{"none"}
	}
	return fmt.Errorf("%s: missing %s; there are %s", when, strings.Join(missing, ", "), strings.Join(there, ", "))
}

func (c *Crew) agree() error {
	first := c.crew[1]
	for number := 2; number <= c.cfg.Size; number++ {
		if m := c.crew[number]; m.Experiment != first.Experiment {
			return fmt.Errorf("the workers have different experiments; start all with the same flags:\n%s: %s\n%s: %s",
				first.describe(1), first.Experiment, m.describe(number), m.Experiment)
		}
	}
	return nil
}

// Number is this worker's number, from 1. Worker 1 gets the records of the others.
func (c *Crew) Number() int { return c.number }

// Root is the path below which each trial of this run has its path.
func (c *Crew) Root() string { return c.crew[1].Root }

// Workers describes all workers, in the order of their numbers.
func (c *Crew) Workers() (all []string) {
	for number := 1; number <= c.cfg.Size; number++ {
		all = append(all, c.crew[number].About)
	}
	return all
}

// Context ends with the context of Join, when a worker leaves, when this worker's session
// ends, or with [Crew.Close]. If a worker has left, its cause names the worker.
func (c *Crew) Context() context.Context { return c.ctx }

// message is the data of a member of the group: the worker's description, and from its first
// trial on also its latest record.
type message struct {
	About      string `json:"about"`      // see Config
	Experiment string `json:"experiment"` // see Config
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

// crewOf returns the workers among the members of the group, by number.
func crewOf(members []recipes.Member, size int) (map[int]member, error) {
	crew := map[int]member{}
	for _, m := range members {
		number := 0
		if _, err := fmt.Sscanf(m.Name, "worker-%d", &number); err != nil || number < 1 || number > size || m.Name != name(number) {
			continue
		}
		w := member{token: m.Token}
		if err := json.Unmarshal(m.Data, &w.message); err != nil {
			return nil, fmt.Errorf("%s is not a worker's: %w", m.Znode, err)
		}
		crew[number] = w
	}
	return crew, nil
}
