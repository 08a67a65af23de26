package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A service leads while its plugin crashes. Supervise starts the plugin again, and it takes
// up the session: the leadership stands, with the same token. A service campaigns in
// another session, from Open, when Done closes.
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
