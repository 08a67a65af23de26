package timeline_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestFaultsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]timeline.Fault{
		"leader@10s":                {Victim: timeline.Leader, At: 10 * time.Second, Restart: 5 * time.Second},
		"leader@10s:restart=2s":     {Victim: timeline.Leader, At: 10 * time.Second, Restart: 2 * time.Second},
		"follower@1m0s":             {Victim: timeline.Follower, At: time.Minute, Restart: 5 * time.Second},
		"follower@1s:restart=1.5ms": {Victim: timeline.Follower, At: time.Second, Restart: 1500 * time.Microsecond},
		"holder@30.5s":              {Victim: timeline.Holder, At: 30500 * time.Millisecond},
		"holder@5us":                {Victim: timeline.Holder, At: 5 * time.Microsecond},
	} {
		got, err := timeline.Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %+v and written as %q, %v; want %+v", text, got, got, err, want)
		}
		var again timeline.Fault
		must.Do(t, json.Unmarshal(must.Get(json.Marshal(got))(t), &again))
		if again != want {
			t.Errorf("%q in JSON is %+v", text, again)
		}
	}
}

func TestWrongFaultsAreRefusedWithTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `"" is unknown; one of leader, follower, holder`,
		"pigeon@1s":                `"pigeon" is unknown; one of leader, follower, holder`,
		"leader":                   "it has no time; write it as in leader@10s",
		"leader@":                  `"" is not a time, such as 10s`,
		"leader@10":                `"10" is not a time, such as 10s`,
		"leader@soon":              `"soon" is not a time`,
		"leader@-1s":               "-1s is not above 0 and at most 1h0m0s",
		"leader@0s":                "0s is not above 0",
		"leader@61m":               "1h1m0s is not above 0",
		"leader@1s@2s":             `"1s@2s" is not a time`,
		"leader@1s:":               `option "" is unknown; the only one is restart=5s`,
		"leader@1s:stop=2s":        `option "stop=2s" is unknown`,
		"leader@1s:restart=":       `restart=: "" is not a time`,
		"leader@1s:restart=0s":     "restart=: 0s is not above 0",
		"holder@1s:restart=2s":     "a holder is cut off until its session is lost",
		"leader@1s:restart=1s:2":   `"1s:2" is not a time`,
		"leader@9223372036854775h": "is not a time",
	} {
		if f, err := timeline.Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is read as %+v, %v; want %q", text, f, err, want)
		}
	}
}

func parsed(t *testing.T, texts ...string) (faults []timeline.Fault) {
	t.Helper()
	for _, text := range texts {
		faults = append(faults, must.Get(timeline.Parse(text))(t))
	}
	return faults
}

func TestFaultsAreOrderedAndOneServerIsDownAtATime(t *testing.T) {
	faults := parsed(t, "holder@11s", "follower@15s:restart=1s", "leader@10s")
	must.Do(t, timeline.Order(faults))
	if got := timeline.Text(faults); got != "leader@10s,holder@11s,follower@15s:restart=1s" {
		t.Errorf("the order is %s", got)
	}
	if end := timeline.End(faults); end != 16*time.Second {
		t.Errorf("they end at %v; want 16s", end)
	}
	for _, wrong := range [][]string{{"leader@10s", "follower@14.9s"}, {"follower@1s:restart=20s", "holder@5s", "leader@10s"}, {"leader@1s", "follower@1s"}} {
		if err := timeline.Order(parsed(t, wrong...)); err == nil || !strings.Contains(err.Error(), "only one server may be down") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// at is in milliseconds.
func at(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

func TestTheSeriesHasEachSecondAndTheGapAfterEachFault(t *testing.T) {
	r := timeline.NewRecorder(6500 * time.Millisecond)
	faults := parsed(t, "leader@1s", "holder@3s", "follower@5s")
	r.Grant(at(600), at(300), -1) // the time before the first grant is not a gap
	r.Grant(at(700), at(10), at(2))
	r.Grant(at(750), at(30), at(4))
	n := r.Fault(at(1000), faults[0])
	r.Lost(at(1100))
	r.Grant(at(2500), at(1900), at(1))
	r.Back(at(2600), n)
	r.Grant(at(2700), at(1), at(1))
	r.Fault(at(3000), faults[1])
	r.Grant(at(2990), at(1), at(1)) // recorded late, so it does not end the gap
	r.Lost(at(4500))
	r.Lost(at(4500))
	r.Fault(at(5000), faults[2])
	r.Grant(at(5010), at(2000), -1)
	r.End(at(6500))
	if r.Grant(at(6600), at(1), at(1)) {
		t.Error("a grant after the end counts")
	}
	r.Lost(at(6600))
	if n := r.Fault(at(6700), faults[0]); n != -1 {
		t.Errorf("a fault after the end has the number %d", n)
	}
	r.Back(at(6800), 2)
	r.Miss(faults[1])

	one := func(ms int) timeline.Times { return timeline.Times{P50: at(ms), P99: at(ms), Max: at(ms)} }
	s := r.Series()
	want := timeline.Series{
		Seconds: []timeline.Second{
			{Grants: 3, Wait: timeline.Times{P50: at(30), P99: at(300), Max: at(300)}, Handoff: timeline.Times{P50: at(2), P99: at(4), Max: at(4)}},
			{Lost: 1},
			{Grants: 2, Wait: timeline.Times{P50: at(1), P99: at(1900), Max: at(1900)}, Handoff: one(1)},
			{Grants: 1, Wait: one(1), Handoff: one(1)},
			{Lost: 2},
			{Grants: 1, Wait: one(2000)},
			{},
		},
		Before: timeline.Gap{From: at(750), Longest: at(250)},
		Faults: []timeline.Outcome{
			{Fault: faults[0], Began: at(1000), Gap: timeline.Gap{From: at(1000), Longest: at(1500)}, Recovered: true, Lost: 1, Back: at(2600)},
			{Fault: faults[1], Began: at(3000), Gap: timeline.Gap{From: at(3000), Longest: at(2000)}, Lost: 2},
			{Fault: faults[2], Began: at(5000), Gap: timeline.Gap{From: at(5010), Longest: at(1490)}, Recovered: true},
		},
		Missed: []timeline.Fault{faults[0], faults[1]},
	}
	for i := range s.Seconds { // histograms have three digits
		for _, times := range []*timeline.Times{&s.Seconds[i].Wait, &s.Seconds[i].Handoff} {
			times.P50, times.P99 = times.P50.Round(at(1)), times.P99.Round(at(1))
			if times.P99 > times.Max {
				t.Errorf("second %d: %+v", i, times)
			}
		}
	}
	if !reflect.DeepEqual(*s, want) {
		t.Errorf("the series is\n%+v; want\n%+v", *s, want)
	}
}

func TestATimelineWithoutFaultsHasOneGap(t *testing.T) {
	r := timeline.NewRecorder(2 * time.Second)
	r.Grant(at(100), at(100), -1)
	r.Grant(at(500), at(1), at(1))
	r.Grant(at(3100), at(1), at(1)) // End comes late: it belongs to the last second
	r.End(at(2000))
	s := r.Series()
	if want := (timeline.Gap{From: at(500), Longest: at(2600)}); s.Before != want || len(s.Seconds) != 2 || s.Seconds[1].Grants != 1 || len(s.Faults) != 0 {
		t.Errorf("%+v; want the gap %v", s, want)
	}
	var again timeline.Series
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(s))(t), &again))
	if !reflect.DeepEqual(again, *s) {
		t.Errorf("in JSON it is %+v", again)
	}
}
