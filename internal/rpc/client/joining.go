package client

import (
	"context"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// joining is a call that waits for its grant, and to hear where its contender has joined.
type joining struct {
	joined  func(recipes.Place) // may be nil
	once    sync.Once
	telling sync.WaitGroup // while the call goes on

	turns chan turn // holds the latest that takeUp has offered
	anew  bool      // it takes a turn also without a znode: DropRest would undo what it does

	// Under the session's mu:
	on    *tenure // in which the call is made; nil when it has returned
	znode string  // that it waits with, if that is known
	at    *tenure // whose plugin has taken the place up
	took  func()  // tells takeUp so; may be nil
}

// A turn is offered to a call whose contender can be taken up in a tenure.
type turn struct {
	in   *tenure
	done chan struct{} // to be closed when it was, or will not be
}

func newJoining(joined func(recipes.Place)) *joining {
	return &joining{joined: joined, turns: make(chan turn, 1)}
}

func (j *joining) tell(p recipes.Place) {
	if j.joined != nil {
		j.once.Do(func() { j.joined(p) })
	}
}

// offer offers a turn, in the place of one that nobody waits for any more. It needs the
// session's mu: a call that has left before is offered nothing.
func (j *joining) offer(t turn) {
	select {
	case <-j.turns:
	default:
	}
	j.turns <- t
}

// next waits until the call can be made. had is the place that it has to take up.
func (s *session) next(ctx context.Context, j *joining) (t *tenure, had *pb.Grant, err error) {
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	for {
		t, changed := s.servedNow()
		if t != nil {
			s.begins(j, t, nil)
			return t, nil, nil
		}
		select {
		case now := <-j.turns:
			return now.in, s.begins(j, now.in, &now), nil
		case <-changed:
		case <-s.over.Done():
			return nil, nil, s.Err()
		case <-ctx.Done():
			return nil, nil, notServed(ctx)
		}
	}
}

// begins notes in which tenure the call is made, and forgets its place unless it was
// offered a turn to take that up.
func (s *session) begins(j *joining, t *tenure, offered *turn) (had *pb.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.on, j.took = t, nil
	if offered == nil {
		j.znode = ""
		return nil
	}
	j.took = sync.OnceFunc(func() { close(offered.done) })
	return &pb.Grant{Znode: j.znode}
}

// placed notes where the contender stands, as the plugin of a tenure says, and tells the
// application. It is told in a goroutine of its own. It may make a call of the session, and
// if the plugin dies, that call waits until takeUp has seen this one again.
func (s *session) placed(j *joining, t *tenure, p recipes.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.on != t {
		return // the call has returned, and its answer has the place
	}
	j.znode = p.Znode
	s.settle(j)
	if j.joined != nil {
		j.telling.Go(func() { j.tell(p) })
	}
}

// settle notes that the plugin knows of the contender, or does not need to. It needs mu.
func (s *session) settle(j *joining) {
	j.at = j.on
	if j.took != nil {
		j.took()
	}
}

// answered notes that the call has returned.
func (s *session) answered(j *joining) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(j)
	j.on = nil
}

// inTurn is session.repeating for a call that DropRest would undo: it is made before that.
func (s *session) inTurn(j *joining) making {
	return func(ctx context.Context, left time.Duration, rpc func(context.Context) error) error {
		return s.repeated(ctx, answers, func() (*tenure, error) {
			t, _, err := s.next(ctx, j)
			if err != nil {
				return nil, err
			}
			defer s.answered(j)
			return t, s.in(ctx, t, left, rpc)
		})
	}
}

func (s *session) expect(id string, j *joining) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins[id] = j
}

func (s *session) unexpect(id string, j *joining) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.joins, id)
	s.settle(j)
	select {
	case t := <-j.turns:
		close(t.done)
	default:
	}
}

// joined tells a place to the call that waits for it, if it still does.
func (s *session) joined(t *tenure, id string, p recipes.Place) {
	s.mu.Lock()
	j := s.joins[id]
	s.mu.Unlock()
	if j != nil {
		s.placed(j, t, p)
	}
}

// read is given what is known of the answer in a tenure.
func (s *session) read(j *joining, t *tenure, part []byte) {
	if p, ok := wire.EarlyPlace(part); ok {
		s.placed(j, t, p)
	}
}

// place finds out, after the call, where the contender had joined.
func place(a answer, err error) (recipes.Place, bool) {
	if err != nil {
		return wire.PlaceOf(err)
	}
	return wire.Place(a.GetPlace()), a.GetPlace() != nil
}
