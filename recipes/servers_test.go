package recipes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestConnectStringsOfOtherLibrariesAreParsed(t *testing.T) {
	for connect, want := range map[string]struct {
		servers []string
		chroot  string
	}{
		"h1:2181,h2:2181/app":      {[]string{"h1:2181", "h2:2181"}, "/app"},
		"h1:2181,h2:2181/app/a":    {[]string{"h1:2181", "h2:2181"}, "/app/a"},
		" h1:2181, h2/app ":        {[]string{"h1:2181", "h2"}, "/app"},
		"h1:2181":                  {[]string{"h1:2181"}, ""},
		"h1:2181/":                 {[]string{"h1:2181"}, ""},
		"[2001:db8::1]:2181,h/app": {[]string{"[2001:db8::1]:2181", "h"}, "/app"},
	} {
		servers, chroot, err := recipes.ParseConnectString(connect)
		if err != nil || !slices.Equal(servers, want.servers) || chroot != want.chroot {
			t.Errorf("%q: %q, %q, %v; want %q", connect, servers, chroot, err, want)
		}
	}
	for connect, why := range map[string]string{
		"":                        "give at least one host:port",
		"/app":                    "give at least one host:port",
		"h1,,h2":                  "Servers[1]: is empty",
		"h1:2181/app,h2:2181/app": `"h2:2181/app" follows the chroot /app; the chroot follows the last server`,
		"h1:2181/app/":            "ends with /",
		"h1:2181//app":            "has an empty element",
		"h1:2181/zookeeper":       "the servers' own directory",
		"h1:port/app":             `port "port"`,
	} {
		servers, chroot, err := recipes.ParseConnectString(connect)
		if !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) || servers != nil || chroot != "" {
			t.Errorf("%q: %q, %q, %v; want ErrInvalid with %q", connect, servers, chroot, err, why)
		}
	}
}

// 2001:db8::1:2181 is an address without a port, or one with the port 2181.
func TestAddressesAreNeverGuessed(t *testing.T) {
	for given, want := range map[string]string{
		"h":                       "h:2181",
		"h:1":                     "h:1",
		"10.0.0.1":                "10.0.0.1:2181",
		"::1":                     "[::1]:2181",
		"[::1]":                   "[::1]:2181",
		"[2001:db8::1:2181]":      "[2001:db8::1:2181]:2181",
		"[2001:db8::1]:2182":      "[2001:db8::1]:2182",
		"2001:db8::1":             "[2001:db8::1]:2181",
		"2001:db8::abcd:ef":       "[2001:db8::abcd:ef]:2181",
		"2001:db8:0:0:0:0:0:2181": "[2001:db8:0:0:0:0:0:2181]:2181",
		"fe80::1%eth0":            "[fe80::1%eth0]:2181",
		"[fe80::1%eth0]:1":        "[fe80::1%eth0]:1",
	} {
		cfg, err := recipes.SessionConfig{Servers: []string{given}}.Normalize()
		if err != nil || cfg.Servers[0] != want {
			t.Errorf("%q: %q, %v; want %q", given, cfg.Servers, err, want)
		}
	}
	for given, why := range map[string]string{
		"2001:db8::1:2181":     `ambiguous: give [2001:db8::1]:2181, or [2001:db8::1:2181] for the default port`,
		"1:2:3:4:5:6:7:8:2181": "needs brackets",
		"fe80::1%eth0:2181":    "",
		"h1:2181/app":          "use ParseConnectString",
		"http://127.0.0.1:1":   "is not host:port",
		"[2001:db8::1":         "",
		"h:99999999":           "is not a port number",
	} {
		if _, err := (recipes.SessionConfig{Servers: []string{given}}).Normalize(); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want ErrInvalid with %q", given, err, why)
		}
	}
}
