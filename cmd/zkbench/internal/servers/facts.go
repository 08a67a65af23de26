package servers

import (
	"cmp"
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/internal/fourletter"
)

// notKnown is the value of a fact that the servers do not report.
const notKnown = "not known: the servers do not report it"

// reported are the facts in the replies to conf and envi, by their names there. Paths and ports
// are left out, because they do not influence speed.
var reported = []string{
	"tickTime", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "initLimit", "syncLimit",
	"java.version", "java.vendor", "jute.maxbuffer", "os.name", "os.arch", "os.memory.max",
}

// unreported are facts that a server does not report. They are known for servers that were
// started for the run, and named as missing for others.
var unreported = []string{"forceSync", "caches", "processors", "memory", "disk", "fsync"}

// Facts adds the known facts about the servers to details. It names the unknown ones too,
// so that a reader does not assume that they are equal in two sets of results.
func (s Server) Facts(ctx context.Context, details map[string]string) {
	add := func(name, value string) {
		if _, ok := details["server "+name]; !ok && value != "" {
			details["server "+name] = value
		}
	}
	for name, value := range s.facts {
		add(name, value)
	}
	for _, addr := range s.words.addrs {
		conf, err := s.words.ask(ctx, addr, "conf")
		if err != nil {
			continue
		}
		envi, _ := s.words.ask(ctx, addr, "envi")
		said := fourletter.Pairs(conf+envi, "=")
		for _, name := range reported {
			add(name, said[name])
		}
		if s.Ensemble != nil {
			for name, value := range machine.Disk(cmp.Or(said["dataLogDir"], said["dataDir"])) {
				add(name, value)
			}
		}
		break
	}
	if s.About.Servers == 1 {
		add("initLimit", "none: it is alone")
		add("syncLimit", "none: it is alone")
	}
	for _, name := range append(slices.Clone(reported), unreported...) {
		add(name, notKnown)
	}
}
