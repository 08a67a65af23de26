package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// complete fails if a field of want is zero, because its loss would go unnoticed, or if got
// differs. The fields in left are not sent.
func complete(t *testing.T, got, want any, left ...string) {
	t.Helper()
	v := reflect.ValueOf(want)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(left, name) {
			t.Errorf("the test leaves %s out", name)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMembersLoseNothingOnTheWire(t *testing.T) {
	member := recipes.Member{
		Name: "ann", Znode: "/g/ann", Token: 1 << 40, SessionID: -3,
		Since: time.Unix(1700000000, 5).In(time.Local), Data: []byte("who"),
	}
	complete(t, wire.Members(wire.ToMembers([]recipes.Member{member}))[0], member)
}

func TestRecordsLoseNothingOnTheWire(t *testing.T) {
	record := recipes.Record{
		Name: "ann", Znode: "/g/ann", Token: 1 << 40, SessionID: -3,
		Since: time.Unix(1700000000, 5).In(time.Local), Data: []byte("who"), Unreadable: true,
	}
	complete(t, wire.Record(wire.ToRecord(record)), record)
	if !wire.Record(wire.ToRecord(recipes.Record{})).None() {
		t.Error("the zero Record is not None after the conversion")
	}
}

func TestEntriesLoseNothingOnTheWire(t *testing.T) {
	entry := recipes.Entry{Key: "a/b", Value: []byte("x"), Revision: 1 << 40, Modified: time.Unix(1700000000, 5).In(time.Local), Unset: true}
	complete(t, wire.Entries(wire.ToEntries([]recipes.Entry{entry}))[0], entry)
}

func TestTheOwnerOfTheNameIsSentWithTheFailure(t *testing.T) {
	want := recipes.TakenError{Znode: "/g/ann", SessionID: -3, Since: time.Unix(1700000000, 5).In(time.Local)}
	err := fmt.Errorf("group /g: %w", &want)
	got, said := wire.Error(throughStatus(t, wire.ToStatus(err, nil)))
	var taken *recipes.TakenError
	if !said || !errors.As(got, &taken) {
		t.Fatalf("%#v", got)
	}
	complete(t, *taken, want)
	sameAnswers(t, got, err)
	if got, _ := wire.Error(throughStatus(t, wire.ToStatus(recipes.ErrNodeExists, nil))); errors.As(got, &taken) {
		t.Error("an error without the detail has an owner")
	}
}
