package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// address matches the address of -status in the output of a verb.
var address = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// request sends one request to the server that a verb has announced in a file. code is that of
// the response, or "gone".
func request(ts *testscript.TestScript, method, file, path string) (code, body string) {
	at := ""
	eventually(ts, []string{"an address in", file}, func() bool {
		said, _ := os.ReadFile(ts.MkAbs(file))
		at = address.FindString(string(said))
		return at != ""
	})
	r, err := http.NewRequest(method, at+path, nil)
	ts.Check(err)
	r.Close = true // a server that ends leaves no connection behind
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "gone", err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	return response.Status[:3], string(text)
}

// httpCommand waits until a request has that response.
func httpCommand(ts *testscript.TestScript, _ bool, args []string) {
	method := http.MethodGet
	if args[0] == "-post" {
		method, args = http.MethodPost, args[1:]
	}
	pattern := ""
	if len(args) > 3 {
		pattern = args[3]
	}
	line := regexp.MustCompile("(?m)" + pattern)
	var code, body string
	defer func() { ts.Logf("%s: %s\n%s", args[1], code, body) }()
	eventually(ts, args, func() bool {
		code, body = request(ts, method, args[0], args[1])
		return code == args[2] && line.MatchString(body)
	})
}

// name matches the names of metrics and labels.
var name = regexp.MustCompile(`zkrecipes_[a-z_]+`)

// monitored checks that the server has every metric and label that the files in
// examples/monitoring name, and that the rules or the dashboard name every metric.
func monitored(ts *testscript.TestScript, _ bool, args []string) {
	code, body := request(ts, http.MethodGet, args[0], "/metrics")
	if code != "200" {
		ts.Fatalf("%s: %s", code, body)
	}
	served := map[string]bool{}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") {
			for _, n := range name.FindAllString(line, -1) {
				served[n] = true
			}
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "monitoring", "*.*"))
	ts.Check(err)
	named := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		ts.Check(err)
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			ts.Fatalf("%s is not JSON", file)
		}
		page := strings.HasSuffix(file, ".md") // evaluates no metric
		for _, n := range name.FindAllString(string(text), -1) {
			named[n] = named[n] || !page
			if !served[n] && !(page && served[n+"_bucket"]) {
				ts.Fatalf("%s names %s, which /metrics does not have:\n%s", file, n, body)
			}
		}
	}
	for n := range served {
		// A histogram also has a sum and a count.
		if bucket := regexp.MustCompile("_(sum|count)$").ReplaceAllString(n, "_bucket"); !named[n] && !named[bucket] {
			ts.Fatalf("no rule and no panel in examples/monitoring names %s", n)
		}
	}
}
