package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A service keeps leading while its plugin crashes. Supervise restarts the plugin, which
// resumes the session: the leadership is held, with the same token. If Done closes, a service
// opens another session and campaigns again.
func ExampleSupervise() {
	ctx := context.Background()
	supervisor, err := host.Supervise(ctx, host.SupervisorConfig{
		Plugin: host.Config{Path: pluginPath, Checksum: checksum},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer supervisor.Close(ctx)

	session, err := supervisor.Open(ctx, recipes.SessionConfig{Servers: servers})
	if err != nil {
		log.Fatal(err)
	}
	election, err := session.Election("/service/leader", recipes.ElectionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	leadership, err := election.Campaign(ctx, []byte("host-1"))
	if err != nil {
		log.Fatal(err)
	}
	token := leadership.Token()
	crashPlugin(supervisor.Plugin().PID())

	line, err := session.Contenders(ctx, "/service/leader") // waits for the next plugin
	if err != nil {
		log.Fatal(err)
	}
	first := line.Contenders[0]
	fmt.Printf("%s leads, with the same token: %t\n", first.Data, first.Holds && first.Token == token)
	if err := leadership.Resign(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// host-1 leads, with the same token: true
}
