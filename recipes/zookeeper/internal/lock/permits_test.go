package lock

import "testing"

func TestThePermitsInTheDataOfAPath(t *testing.T) {
	for data, want := range map[string]int{
		"permits=3": 3, "permits=1": 1, "permits=0": 0, "permits=-1": 0, "permits=": 0, "permits=x": 0, "permits=3x": 0,
		"permits=99999999999999999999": 0, "3": 0, "": 0, "xpermits=3": 0,
	} {
		if got := Permits([]byte(data)); got != want {
			t.Errorf("%q has %d permits; want %d", data, got, want)
		}
	}
}
