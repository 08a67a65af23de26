package expiry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestWhatWasBeforeASuspensionIsOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slept := time.Hour // before
		c := NewWith(func() time.Duration { return slept })
		before := time.Now()
		is := func(since time.Time, want time.Duration) {
			t.Helper()
			if got := c.Slept(since); got != want {
				t.Errorf("suspended for %v; want %v", got, want)
			}
		}
		suspend := func(lasts time.Duration) {
			time.Sleep(rest) // before that, the last reading is reused
			slept += lasts
		}
		is(before, 0)
		suspend(shortest - 1)
		is(before, 0)
		suspend(1)
		is(before, shortest)
		time.Sleep(time.Nanosecond) // the monotonic clock advances
		between := time.Now()
		is(between, 0)
		suspend(time.Minute)
		is(before, shortest+time.Minute)
		is(between, time.Minute)
		time.Sleep(time.Nanosecond)
		is(time.Now(), 0)
		for range 2 * kept {
			suspend(time.Second)
			is(time.Now(), time.Second)
		}
		is(before, shortest+time.Minute+2*kept*time.Second)
		slept += time.Hour // just after a reading
		is(before, shortest+time.Minute+2*kept*time.Second)
		time.Sleep(rest)
		is(before, shortest+time.Minute+2*kept*time.Second+time.Hour)
	})
}

func TestNoSuspensionIsSeenWhileThereIsNone(t *testing.T) {
	c, begun := New(), time.Now()
	for range 10_000 {
		if slept := c.Slept(begun); slept != 0 {
			t.Fatalf("suspended for %v", slept)
		}
	}
}

func TestAllAreTold(t *testing.T) {
	var first, second int
	stop := OnWake(func() { first++ })
	stopSecond := OnWake(func() { second++ })
	wakes.tell()
	stop()
	stop()
	wakes.tell()
	stopSecond()
	wakes.tell()
	if first != 1 || second != 2 {
		t.Errorf("told %d and %d times", first, second)
	}
}

func BenchmarkSlept(b *testing.B) {
	c, begun := New(), time.Now()
	for b.Loop() {
		c.Slept(begun)
	}
}
