package main

import (
	"fmt"
	"os"
	"sort"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

func main() {
	m := map[string][]string{}
	var keys []string
	for _, f := range os.Args[1:] {
		h, _ := os.Open(f)
		runs, err := record.Read(h)
		if err != nil {
			fmt.Println(f, err)
			continue
		}
		for _, run := range runs {
			for _, r := range run.Records {
				k := fmt.Sprintf("%d %s %s hold=%v rate=%v %6d", run.Environment.Server.Servers, r.Workload, r.Strategy, r.Hold, r.Rate, r.Contenders)
				if m[k] == nil {
					keys = append(keys, k)
				}
				hh := r.Handoff
				if r.Workload == "open" {
					hh = r.Wait
				}
				m[k] = append(m[k], fmt.Sprintf("%.2f/%.2f/%.2f/%.2f", float64(hh.ValueAtPercentile(10))/1e6, float64(hh.ValueAtPercentile(25))/1e6, float64(hh.ValueAtPercentile(50))/1e6, float64(hh.ValueAtPercentile(99))/1e6))
			}
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Println(k, m[k])
	}
}
