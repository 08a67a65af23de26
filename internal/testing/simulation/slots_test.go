package simulation

import (
	"context"
	"fmt"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestSimulationOfSlots simulates slots. .ci/simulate runs it by the beginning of its name.
func TestSimulationOfSlots(t *testing.T) {
	sc := scenario{name: "slots", line: slotsPath, unwrapped: true, paths: []string{"/slots/0", "/slots/1"}, begin: slots}
	dies := surviving(sc)
	dies.begin = twice(slots)
	simulateEach(t, number(100, 50)/10, sc, dies) // about as many as the other scenarios have in TestSimulation
}

const (
	slotsPath   = "/slots"
	slotPermits = 2
)

// slots has clients hold numbers. Each number is checked like a lock with a journal of its own: one
// client holds it at a time, and its tokens grow.
func slots(*World) game {
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		l, err := s.Slots(slotsPath, recipes.SemaphoreConfig{Permits: slotPermits, Strategy: pick(c.chance, recipes.Strategies()...), Joined: c.joined})
		if err != nil {
			return err
		}
		g := &grant{session: s, journaled: true}
		return take(ctx, c, g, 1, func(ctx context.Context) (recipes.SlotHold, error) {
			hold, err := l.Acquire(ctx)
			if err == nil {
				if hold.Slot() < 0 || hold.Slot() >= slotPermits {
					c.world.fail(c.name, "granted number %d of %d", hold.Slot(), slotPermits)
				}
				g.path = fmt.Sprintf("%s/%d", slotsPath, hold.Slot())
			}
			return hold, err
		}, recipes.SlotHold.Release)
	}}
}
