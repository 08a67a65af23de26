package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A service leads whenever it can. Supervise starts the plugin again after a crash,
// and the service opens another session and campaigns anew: what the old session
// held is gone.
func ExampleSupervise() {
	ctx := context.Background()
	supervisor, err := host.Supervise(ctx, host.SupervisorConfig{
		Plugin: host.Config{Path: pluginPath, Checksum: checksum},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer supervisor.Close(ctx)

	for term := 1; term <= 2; term++ { // a service has no last term
		if err := lead(ctx, supervisor, term); errors.Is(err, recipes.ErrNotHeld) {
			fmt.Println("term", term, "is over; the plugin was lost:", errors.Is(err, recipes.ErrPluginLost))
		} else if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// leading in term 1
	// term 1 is over; the plugin was lost: true
	// leading in term 2
}

// lead campaigns in a session of its own, and works until the work is done or the
// leadership is lost.
func lead(ctx context.Context, supervisor *host.Supervisor, term int) error {
	session, err := supervisor.Open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		return err
	}
	defer session.Close(ctx)
	election, err := session.Election("/service/leader", recipes.ElectionConfig{})
	if err != nil {
		return err
	}
	leadership, err := election.Campaign(ctx, []byte("host-1"))
	if err != nil {
		return err
	}
	fmt.Println("leading in term", term)
	if term == 1 {
		crashPlugin(supervisor.Plugin().PID())
	} else if err := leadership.Resign(ctx); err != nil {
		return err
	}
	<-leadership.Done() // a service works until then
	if err := leadership.Err(); !errors.Is(err, recipes.ErrReleased) {
		return err
	}
	return nil
}
