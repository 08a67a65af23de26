package load

import (
	"testing"
	"time"
)

func TestWarmupEndsWhenThreeWindowsAgree(t *testing.T) {
	w := warmup{shortest: 400 * time.Millisecond}
	// There is a turn every 30 ms until 300 ms, and then every 10 ms. A window takes 100 ms.
	var at time.Duration
	var turns int64
	for !w.done(at, turns) {
		if at < 300*time.Millisecond {
			at += 30 * time.Millisecond
		} else {
			at += 10 * time.Millisecond
		}
		turns++
		if at > time.Minute {
			t.Fatal("it never ends")
		}
	}
	if !w.steady() || at < 600*time.Millisecond || at > 900*time.Millisecond {
		t.Errorf("ended after %v, steady %v; want soon after three windows of the new rate", at, w.steady())
	}
}

func TestWarmupEndsEvenIfItIsNotSteady(t *testing.T) {
	w := warmup{shortest: 100 * time.Millisecond}
	var at, step time.Duration = 0, time.Millisecond
	var turns int64
	for !w.done(at, turns) {
		at += step
		step += step / 20
		turns++
	}
	if w.steady() || at < 800*time.Millisecond {
		t.Errorf("ended after %v, steady %v; want eight times the shortest and not steady", at, w.steady())
	}
}

func TestWarmupOfZeroEndsAtOnce(t *testing.T) {
	if w := (warmup{}); !w.done(0, 0) {
		t.Error("a warm-up of nothing takes time")
	}
}

func TestConstantArrivalsAreEvenlySpaced(t *testing.T) {
	next := newPacer(Constant, 500, 0)
	for i := range 10 {
		if got, want := next(), time.Duration(i)*2*time.Millisecond; got != want {
			t.Errorf("arrival %d at %v; want %v", i, got, want)
		}
	}
}

func TestPoissonArrivalsHaveTheirRateAndSeed(t *testing.T) {
	next, again, other := newPacer(Poisson, 1000, 3), newPacer(Poisson, 1000, 3), newPacer(Poisson, 1000, 4)
	var last, gap time.Duration
	var squares float64
	differs := false
	const n = 10_000
	for range n {
		at := next()
		if at < last {
			t.Fatal("arrivals go back in time")
		}
		if at != again() {
			t.Fatal("the same seed gives other arrivals")
		}
		differs = differs || at != other()
		gap, last = at-last, at
		squares += gap.Seconds() * gap.Seconds()
	}
	if !differs {
		t.Error("another seed gives the same arrivals")
	}
	mean := last.Seconds() / n
	if mean < 0.00095 || mean > 0.00105 {
		t.Errorf("mean gap %v s; want 1 ms", mean)
	}
	// The standard deviation of exponential gaps equals their mean.
	if cv := squares/n/(mean*mean) - 1; cv < 0.9 || cv > 1.1 {
		t.Errorf("squared coefficient of variation %.2f; want 1", cv)
	}
}
