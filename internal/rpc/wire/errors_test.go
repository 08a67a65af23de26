package wire_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/telemetry"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

var sentinels = []error{
	recipes.ErrInvalid, recipes.ErrUnavailable, recipes.ErrUnknownOutcome,
	recipes.ErrSessionLost, recipes.ErrNotHeld, recipes.ErrContended,
	recipes.ErrNoLeader, recipes.ErrEmpty, recipes.ErrNoNode, recipes.ErrNodeExists,
	recipes.ErrBadVersion, recipes.ErrNotEmpty, recipes.ErrAccessDenied,
	recipes.ErrTooLarge, recipes.ErrLimit, recipes.ErrInternal,
	recipes.ErrExpired, recipes.ErrDeadline, recipes.ErrClosed,
	recipes.ErrPluginLost, recipes.ErrAuthFailed, recipes.ErrNotContinued,
	recipes.ErrRemoved, recipes.ErrRevoked, recipes.ErrReleased, recipes.ErrNotRevocable, recipes.ErrMismatch,
	recipes.ErrNoTransaction, recipes.ErrUnknownSite, recipes.ErrVoted, recipes.ErrUndecided,
	recipes.ErrOverflow, recipes.ErrUnsupported, recipes.ErrQuota, recipes.ErrSASLRequired, recipes.ErrThrottled,
	recipes.ErrForeign,
	context.Canceled, context.DeadlineExceeded,
}

// combinations are errors of the recipes besides plain sentinels.
var combinations = []error{
	fmt.Errorf("lock /a: %w", recipes.ErrExpired),
	fmt.Errorf("%w: %w", recipes.ErrNotHeld, recipes.ErrExpired),
	fmt.Errorf("%w: %w", recipes.ErrNotHeld, recipes.ErrClosed),
	fmt.Errorf("write: %w: %w", recipes.ErrUnknownOutcome, context.DeadlineExceeded),
	fmt.Errorf("write: %w: %w", recipes.ErrUnknownOutcome, recipes.ErrDeadline),
	fmt.Errorf("update: %w: %w: %w", recipes.ErrUnknownOutcome, recipes.ErrNotHeld, recipes.ErrExpired),
	fmt.Errorf("put: %w: %w: %w", recipes.ErrUnknownOutcome, recipes.ErrUnavailable, context.Canceled),
	fmt.Errorf("open: %w: %w", recipes.ErrUnavailable, context.DeadlineExceeded),
	errors.Join(recipes.ErrLimit, recipes.ErrTooLarge),
	fmt.Errorf("%w: %w", wire.ErrResuming, recipes.ErrInvalid),
}

// sameAnswers reports every sentinel on which two errors disagree.
func sameAnswers(t *testing.T, got, want error) {
	t.Helper()
	for _, s := range sentinels {
		if errors.Is(got, s) != errors.Is(want, s) {
			t.Errorf("errors.Is(%v, %v) = %v; before the wire it was %v", want, s, errors.Is(got, s), errors.Is(want, s))
		}
	}
	if got.Error() != want.Error() {
		t.Errorf("text %q; want %q", got, want)
	}
}

// A caller cannot distinguish by errors.Is on which side of the plugin an error was made.
func TestErrorsMatchAlikeAcrossTheWire(t *testing.T) {
	for _, err := range append(append([]error(nil), sentinels...), combinations...) {
		t.Run(err.Error(), func(t *testing.T) {
			got, said := wire.Error(throughStatus(t, wire.ToStatus(err)))
			if !said {
				t.Error("the error is not attributed to the other side")
			}
			sameAnswers(t, got, err)
			sameAnswers(t, wire.Failure(wire.ToFailure(err), err), err)
		})
	}
}

// The test reads the contract's source, so a new sentinel cannot be forgotten here and in the
// table.
func TestEverySentinelOfTheContractIsInTheTable(t *testing.T) {
	source := must.Get(os.ReadFile("../../../recipes/errors.go"))(t)
	declared := regexp.MustCompile(`(?m)^\t(Err\w+) += `).FindAllSubmatch(source, -1)
	if len(declared) != len(sentinels)-2 { // the context's two
		t.Errorf("the contract has %d sentinels, this test %d", len(declared), len(sentinels)-2)
	}
}

// throughStatus converts a status as gRPC does when it sends it.
func throughStatus(t *testing.T, err error) error {
	t.Helper()
	raw, merr := proto.Marshal(status.Convert(err).Proto())
	if merr != nil {
		t.Fatal(merr)
	}
	var s spb.Status
	must.Do(t, proto.Unmarshal(raw, &s))
	return status.ErrorProto(&s)
}

func TestWriteErrorKeepsItsOperation(t *testing.T) {
	ops := []recipes.Op{recipes.Create("/a", nil), recipes.Set("/b", []byte("x"), 3), recipes.Delete("/c", recipes.AnyVersion)}
	want := &recipes.WriteError{Index: 1, Op: ops[1], Err: fmt.Errorf("set: %w", recipes.ErrBadVersion)}
	got, _ := wire.WriteError(throughStatus(t, wire.ToStatus(fmt.Errorf("guard: %w", want))), ops)
	var we *recipes.WriteError
	if !errors.As(got, &we) || we.Index != 1 || !reflect.DeepEqual(we.Op, ops[1]) || we.Err.Error() != want.Err.Error() {
		t.Fatalf("got %#v", got)
	}
	sameAnswers(t, got, want)
	if got, _ := wire.WriteError(wire.ToStatus(want), ops[:1]); errors.As(got, &we) || !errors.Is(got, recipes.ErrBadVersion) {
		t.Errorf("an index beyond the operations gives %#v", got)
	}
}

func TestReasonOfANewerPluginDegrades(t *testing.T) {
	with := func(code codes.Code, reason, reasons string) error {
		s := must.Get(status.New(code, "text").WithDetails(&errdetails.ErrorInfo{
			Domain: wire.Domain, Reason: reason, Metadata: map[string]string{"reasons": reasons},
		}))(t)
		return s.Err()
	}
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"by its general form", with(codes.FailedPrecondition, "REVOKED", "REVOKED,NOT_HELD"), recipes.ErrNotHeld},
		{"by its code", with(codes.ResourceExhausted, "QUEUE_FULL", "QUEUE_FULL"), recipes.ErrTooLarge},
		{"to a defect", with(codes.FailedPrecondition, "PHASE_OF_THE_MOON", ""), recipes.ErrInternal},
		{"without a list", with(codes.Aborted, "CONTENDED", ""), recipes.ErrContended},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, said := wire.Error(test.err); !errors.Is(got, test.want) || !said {
				t.Errorf("%v, %v does not match %v", got, said, test.want)
			}
		})
	}
}

func TestStatusOfGRPCItselfIsNotTheRecipes(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable:       recipes.ErrUnavailable,
		codes.Canceled:          context.Canceled,
		codes.DeadlineExceeded:  context.DeadlineExceeded,
		codes.ResourceExhausted: recipes.ErrTooLarge,
	} {
		if got, said := wire.Error(status.Error(code, "x")); said || !errors.Is(got, want) {
			t.Errorf("%v: %v, %v; want %v", code, got, said, want)
		}
	}
}

// Details that a proxy has added do not come from the recipes, and are ignored.
func TestDetailsOfOthersAreNotTheRecipes(t *testing.T) {
	s := must.Get(status.New(codes.Unavailable, "text").WithDetails(&errdetails.ErrorInfo{Domain: "proxy.example", Reason: "NOT_HELD"}))(t)
	if got, said := wire.Error(s.Err()); said || errors.Is(got, recipes.ErrNotHeld) || !errors.Is(got, recipes.ErrUnavailable) {
		t.Errorf("%v, said %v", got, said)
	}
}

// An error that never was a status is the caller's own, and does not answer the call.
func TestErrorWithoutAStatusIsReturnedUnchanged(t *testing.T) {
	for _, own := range []error{recipes.ErrDeadline, errors.New("marshal")} {
		if e, said := wire.Error(own); e != own || said {
			t.Errorf("%v became %v, said %v", own, e, said)
		}
	}
	if e, said := wire.Error(nil); e != nil || said {
		t.Errorf("nil became %v, said %v", e, said)
	}
}

// gRPC itself returns this status, but it is still certain that the call was not carried out.
func TestUnknownMethodIsUnsupported(t *testing.T) {
	got, said := wire.Error(status.Error(codes.Unimplemented, "unknown method X"))
	if !said || !errors.Is(got, recipes.ErrUnsupported) || errors.Is(got, recipes.ErrInternal) || !strings.Contains(got.Error(), "unknown method X") {
		t.Errorf("%v, %v", got, said)
	}
}

// No decision depends on the text: the same text with other reasons is another error.
func TestErrorTextIsNotAnInterface(t *testing.T) {
	f := wire.ToFailure(recipes.ErrExpired)
	f.Message = recipes.ErrRemoved.Error()
	if err := wire.Failure(f, recipes.ErrSessionLost); errors.Is(err, recipes.ErrRemoved) || !errors.Is(err, recipes.ErrExpired) {
		t.Errorf("%v was judged by its text", err)
	}
}

func TestFailureAlwaysMatchesWhatHappened(t *testing.T) {
	for _, f := range []*pb.Failure{nil, {}, {Reasons: []string{"NEW"}}, {Message: "m", Reasons: []string{"CONTENDED"}}} {
		if err := wire.Failure(f, recipes.ErrNotHeld); !errors.Is(err, recipes.ErrNotHeld) || err.Error() == "" {
			t.Errorf("%v gives %v", f, err)
		}
	}
}

// A status is sent in headers, whose size is limited; beyond it gRPC would report another
// error.
func TestHugeErrorTextStillArrives(t *testing.T) {
	err := fmt.Errorf("%w: %s", recipes.ErrContended, strings.Repeat("\xff€", 1<<20))
	got, _ := wire.Error(wire.ToStatus(err))
	if !errors.Is(got, recipes.ErrContended) || len(got.Error()) > 4<<10 {
		t.Errorf("%d bytes", len(got.Error()))
	}
}

// A status from a hostile or broken plugin can only become an error.
func FuzzStatus(f *testing.F) {
	for _, err := range append(append([]error(nil), sentinels...), combinations...) {
		raw, _ := proto.Marshal(status.Convert(wire.ToStatus(err)).Proto())
		f.Add(raw)
	}
	we := &recipes.WriteError{Index: 1, Err: recipes.ErrNoNode}
	raw, _ := proto.Marshal(status.Convert(wire.ToStatus(we)).Proto())
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s spb.Status
		if proto.Unmarshal(raw, &s) != nil || s.GetCode() == 0 {
			return
		}
		err := status.ErrorProto(&s)
		got, _ := wire.WriteError(err, []recipes.Op{recipes.Create("/a", nil), recipes.Create("/b", nil)})
		if got == nil {
			t.Fatal("no error")
		}
		_ = got.Error()
		matched := false
		for _, sentinel := range sentinels {
			matched = errors.Is(got, sentinel) || matched
		}
		if !matched {
			t.Fatalf("%v matches nothing", got)
		}
	})
}

// The tool prints which dialect to use, so the contender must arrive with its fields.
func TestAForeignContenderArrivesWithItsFields(t *testing.T) {
	sent := &recipes.ForeignError{Dialect: recipes.Kazoo, Recipe: "Lock", Znode: "/x/a__lock__0000000001"}
	err, said := wire.Error(wire.ToStatus(fmt.Errorf("lock /x: %w", sent)))
	var got *recipes.ForeignError
	if !said || !errors.Is(err, recipes.ErrForeign) || !errors.As(err, &got) || *got != *sent {
		t.Errorf("arrived as %v, %+v", err, got)
	}
}

// An error without a known kind is an internal error.
func TestErrorOfUnknownKindIsInternal(t *testing.T) {
	if err, said := wire.Error(wire.ToStatus(errors.New("x"))); !said || !errors.Is(err, recipes.ErrInternal) {
		t.Errorf("%v, said %v", err, said)
	}
}

// The reasons of losses have the names of the protocol.
func TestLossesHaveTheNamesOfTheProtocol(t *testing.T) {
	for _, s := range sentinels {
		if !errors.Is(s, recipes.ErrSessionLost) && !errors.Is(s, recipes.ErrNotHeld) {
			continue
		}
		for _, err := range []error{s, fmt.Errorf("%w: %w", recipes.ErrNotHeld, s), fmt.Errorf("%w: %w: %w", recipes.ErrNotHeld, s, recipes.ErrForeign)} {
			if got, want := telemetry.ReasonOf(err), wire.ToFailure(err).GetReasons()[0]; got != want {
				t.Errorf("%v: %s, and in the protocol %s", err, got, want)
			}
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }
