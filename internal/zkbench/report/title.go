package report

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// Title says in words what trials have in common that differ in contenders only. A
// record without a strategy stands for all strategies.
func Title(r record.Record, s record.Server) string {
	t := string(r.Workload)
	if !r.Workload.Own() {
		t = fmt.Sprintf("%s, %s", r.Recipe, r.Workload)
	}
	if r.Strategy != "" {
		t += fmt.Sprintf(", %s", r.Strategy)
	}
	t += ", " + through(r.Transport)
	if r.Hold > 0 {
		t += fmt.Sprintf(", hold %v", r.Hold)
	} else {
		t += ", no hold"
	}
	if r.Lines > 0 {
		t += fmt.Sprintf(", %d lines", r.Lines)
	}
	if r.Rate > 0 {
		t += fmt.Sprintf(", %g/s %s", r.Rate, r.Arrivals)
	}
	if r.Workers > 0 {
		t += fmt.Sprintf(", %d workers", r.Workers)
	}
	if r.Delay > 0 {
		t += fmt.Sprintf(", %v added to each round trip (zkbench's processor time and memory include the relay's)", r.Delay)
	}
	return t + ", on " + Servers(s)
}

// through says how the recipes were reached.
func through(transport string) string {
	switch transport {
	case "direct":
		return "through the library"
	case "inprocess":
		return "through gRPC in memory"
	case "relay":
		return "through a relay"
	case "plugin":
		return "through the plugin"
	}
	return "via " + transport
}

// Servers describes the servers in a few words.
func Servers(s record.Server) string {
	version := s.Version
	if version == "" {
		version = "of unknown version"
	}
	switch {
	case s.Mode == "embedded":
		return fmt.Sprintf("the embedded server (%s)", version)
	case s.Servers == 1:
		return "1 ZooKeeper server " + version
	}
	return fmt.Sprintf("%d ZooKeeper servers %s", s.Servers, version)
}
