package main

import (
	"context"
	"strconv"
	"strings"
)

// wantedFigures are the servers' figures that a record should have, by mntr's
// names without zk_. Which of them there are depends on the version.
var wantedFigures = []string{
	"packets_received", "packets_sent", "watch_count", "znode_count", "approximate_data_size",
	"cnt_fsynctime", "sum_fsynctime", "commit_count", "proposal_count",
	"sum_jvm_pause_time_ms", "process_cpu_seconds",
}

// mntr reads the servers' figures: what they answer to mntr, added up. A server that
// does not have a figure adds nothing. If one does not answer there are no figures, and
// the records name all as missing. A sum that lacked a server only before the measured
// part would grow by all that the server ever counted.
func (w words) mntr(ctx context.Context) (map[string]float64, error) {
	sum := map[string]float64{}
	for _, addr := range w.addrs {
		answer, err := w.ask(ctx, addr, "mntr")
		if err != nil {
			return map[string]float64{}, ctx.Err()
		}
		for name, value := range parseMntr(answer) {
			sum[name] += value
		}
	}
	return sum, ctx.Err()
}

// parseMntr returns the numbers in an answer to mntr, without the names' zk_.
func parseMntr(answer string) map[string]float64 {
	figures := map[string]float64{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			figures[strings.TrimPrefix(name, "zk_")] = v
		}
	}
	return figures
}
