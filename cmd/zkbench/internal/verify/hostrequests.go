package verify

import (
	"errors"
	"fmt"
	"slices"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

var requestPromises = []promise{
	{"requests/a grant has its token, and each request an id of its own", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		for _, id := range []string{"a", "b"} {
			if _, err := h.acquire(id, "/a"); err != nil {
				return err
			}
			if _, err := h.ok("release %s", id); err != nil {
				return err
			}
		}
		if asked, _ := received[*pb.AcquireRequest](h); len(asked) != 2 || asked[0].GetRequestId() == asked[1].GetRequestId() {
			return fmt.Errorf("the requests are %v; want two with different request ids", asked)
		}
		return nil
	}},
	{"requests/try is refused while another client holds the lock, and leaves nothing", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		s, hold, err := h.rival("/a")
		if err != nil {
			return err
		}
		defer s.Close(h.ctx)
		if err := h.fails([]string{"CONTENDED"}, "try a /a"); err != nil {
			return err
		}
		if err := hold.Release(h.ctx); err != nil {
			return err
		}
		token, err := h.ok("try b /a")
		if err != nil {
			return err
		}
		_, err = h.granted(token)
		return err
	}},
	{"requests/a lock is granted when the client ahead has released it", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		s, hold, err := h.rival("/a")
		if err != nil {
			return err
		}
		defer s.Close(h.ctx)
		step := h.begin("acquire a /a")
		if err := h.eventually("in the wait queue: the host", func() bool { return h.owned() == 2 }); err != nil {
			return err
		}
		if err := hold.Release(h.ctx); err != nil {
			return err
		}
		token, err := h.succeeded(step)
		if err != nil {
			return err
		}
		_, err = h.granted(token)
		return err
	}},
	{"requests/release releases that grant and no other", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		a, err := h.acquire("a", "/a")
		if err != nil {
			return err
		}
		b, err := h.acquire("b", "/b")
		if err != nil {
			return err
		}
		if _, err := h.ok("release a"); err != nil {
			return err
		}
		if _, held := h.node(a.Stat.Czxid); held {
			return errors.New("the znode of the released grant exists")
		}
		if _, held := h.node(b.Stat.Czxid); !held {
			return errors.New("the znode of the other grant is deleted")
		}
		if _, err := h.ok("held b"); err != nil {
			return err
		}
		return h.fails(append([]string{"RELEASED"}, lost...), "held a")
	}},
	{"requests/a grant that crosses with the caller's timeout is abandoned", func(h *hostBench) error {
		if err := h.open(long); err != nil {
			return err
		}
		h.on("Acquire", Lose)
		h.on("Abandon", Refuse)
		if err := h.fails(nil, "acquire a /a %d", patience.Milliseconds()); err != nil {
			return err
		}
		asked, _ := received[*pb.AcquireRequest](h)
		if len(asked) == 0 {
			return errors.New("the plugin has not received the call of Acquire")
		}
		err := h.eventually("abandoned until an answer: the request id of Acquire", func() bool {
			all, _ := received[*pb.AbandonRequest](h)
			return len(slices.DeleteFunc(all, func(r *pb.AbandonRequest) bool { return r.GetRequestId() != asked[0].GetRequestId() })) >= 2
		})
		if err != nil {
			return err
		}
		return h.eventually("released: the grant", func() bool { return h.owned() == 0 })
	}},
	{"requests/the reason of a refused write is reported", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		if _, err := h.ok("write a /data"); err != nil {
			return err
		}
		return h.fails([]string{"NODE_EXISTS"}, "write a /data")
	}},
	{"requests/a write of an unknown outcome is reported, and not repeated", func(h *hostBench) error {
		if err := h.holds(long); err != nil {
			return err
		}
		h.on("Write", Doubt)
		return errors.Join(h.fails([]string{"UNKNOWN_OUTCOME"}, "write a /data"), h.writesOnce())
	}},
}
