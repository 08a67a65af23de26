package zkserver_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// A common fault: the connection breaks after the commit and before the reply. The client
// gets an error, and the znode exists.
func Example_lostReply() {
	s, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	s.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{DropReply: r.Op == zkserver.OpCreate}
	})
	_, err = conn.Create("/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println("connection closed:", errors.Is(err, zk.ErrConnectionClosed))
	for _, n := range s.Tree() {
		if n.Stat.EphemeralOwner != 0 {
			fmt.Println("orphan:", n.Path)
		}
	}
	// Output:
	// connection closed: true
	// orphan: /lock-0000000000
}
