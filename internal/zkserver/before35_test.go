package zkserver_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// The answers are those of the sources of 3.4.13 (PrepRequestProcessor, CreateMode,
// MultiTransactionRecord), not recorded ones.
func TestAServerBefore35HasNoContainers(t *testing.T) {
	const script = `open a
a create $/c flags=c
a create $/missing/c flags=c
a create $/t flags=t
a create $/none flags=7
a multi
  create $/x
  create $/c flags=c
a multi
  create $/t flags=t
a multi
  createContainer $/c flags=c
a multi
  create2 $/c
a multi
  create $/plain
a createContainer $/c flags=c
eof a
`
	const want = `open a
    session=a timeout=4000
a create $/c flags=c
    a: BadArguments zxid=+2
a create $/missing/c flags=c
    a: NoNode zxid=+3
a create $/t flags=t
    a: BadArguments zxid=+4
a create $/none flags=7
    a: BadArguments zxid=+5
a multi
  create $/x
  create $/c flags=c
    a: ok zxid=+6
        type=-1 err=0 ok
        type=-1 err=-8 BadArguments
        end type=-1 err=-1
a multi
  create $/t flags=t
    a: ok zxid=+7
        type=-1 err=-8 BadArguments
        end type=-1 err=-1
a multi
  createContainer $/c flags=c
    a: MarshallingError zxid=+8
a multi
  create2 $/c
    a: MarshallingError zxid=+9
a multi
  create $/plain
    a: ok zxid=+10
        type=1 err=0 path="$/plain"
        end type=-1 err=-1
a createContainer $/c flags=c
    a: Unimplemented zxid=-1
eof a
    a: closed
`
	got := must.Get(play(embeddedWith(t, zkserver.Config{Before35: true}), "before35", script))(t)
	if got != want {
		t.Errorf("the transcript differs from what 3.4 answers (-):\n%s", diff(want, got))
	}
}
