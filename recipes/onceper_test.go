package recipes

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// stubRecord is a record, and the grant for its writes. Each read and each write gets the next answer.
// After the last one it panics.
type stubRecord struct {
	Configuration
	Grant
	reads  []Entry // an answer that is None means ErrNoNode
	writes []error
}

func (r *stubRecord) Key(op Op) (Op, error) { return op, nil }

func (r *stubRecord) Get(context.Context, string) (e Entry, err error) {
	if e, r.reads = r.reads[0], r.reads[1:]; e.None() {
		err = ErrNoNode
	}
	return e, err
}

func (r *stubRecord) Err() error { return nil }

func (r *stubRecord) Write(context.Context, ...Op) (err error) {
	err, r.writes = r.writes[0], r.writes[1:]
	return err
}

// The turn is due exactly when the period has passed, to the millisecond. Its time is that of its
// own write. An error ends the call if reading again does not help.
func TestOncePerReadsAgain(t *testing.T) {
	at := func(ms int64, data string) Entry {
		return Entry{Value: []byte(data), Revision: 1, Modified: time.UnixMilli(ms)}
	}
	for name, test := range map[string]struct {
		reads  []Entry
		writes []error
		began  int64 // 0: no turn is due
		err    error
	}{
		"the period is over":                     {[]Entry{at(7, "7"), at(1007, "7")}, []error{nil}, 1007, nil},
		"a millisecond is left":                  {[]Entry{at(7, "7"), at(1006, "7")}, []error{nil}, 0, nil},
		"another client creates the record":      {[]Entry{{}, at(1, ""), at(2, "")}, []error{ErrNodeExists, nil}, 2, nil},
		"deleted, and created by another client": {[]Entry{{}, {}, at(1, ""), at(2, "")}, []error{nil, ErrNodeExists, nil}, 2, nil},
		"deleted before it is written":           {[]Entry{at(1, ""), {}, at(2, "")}, []error{ErrNoNode, nil}, 2, nil},
		"the configuration has no znode":         {[]Entry{{}}, []error{ErrNoNode}, 0, ErrNoNode},
	} {
		r := &stubRecord{reads: test.reads, writes: test.writes}
		turn, err := OncePer(t.Context(), r, r, time.Second)
		if early := errors.As(err, new(*NotDueError)); early != (test.began == 0 && test.err == nil) || !early && !errors.Is(err, test.err) || err == nil && turn.Began().UnixMilli() != test.began {
			t.Errorf("%s: %+v, error %v; want %d, error %v", name, turn, err, test.began, test.err)
		}
	}
}

// However far the clock was set back, the error says so, and the period starts again.
func TestAClockThatWasSetFarBack(t *testing.T) {
	for _, last := range []string{"253402300800000", "9223372036854775807"} { // the year 10000, and the last one
		at := time.UnixMilli(1000)
		r := &stubRecord{reads: []Entry{
			{Value: []byte(last), Revision: 1, Modified: at},
			{Value: []byte(last), Revision: 2, Modified: at},
		}, writes: []error{nil, nil}}
		_, err := OncePer(t.Context(), r, r, time.Second)
		early, ok := errors.AsType[*NotDueError](err)
		if !ok || early.Back != math.MaxInt64 || !early.Last.Equal(at) || !strings.Contains(err.Error(), "set back by") {
			t.Errorf("%s: %v", last, err)
		}
	}
}
