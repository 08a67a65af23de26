package conn

import (
	crypto "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"
)

// chance draws numbers that need not be secret. Each session has its own small generator,
// seeded by crypto/rand. So a test that replaces crypto/rand's source, as the simulation does,
// determines every random choice.
type chance struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newChance() *chance {
	var seed [16]byte
	_, _ = crypto.Read(seed[:]) // never fails, according to its documentation
	return &chance{rand: rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:]), binary.BigEndian.Uint64(seed[8:])))}
}

// below returns a duration in [0, limit). limit must be positive.
func (c *chance) below(limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.rand.Int64N(int64(limit)))
}

func (c *chance) shuffle(list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// Chance returns a random duration below limit. It spreads clients that wait at the same time.
func (w *Wire) Chance(limit time.Duration) time.Duration { return w.dialer.chance.below(limit) }
