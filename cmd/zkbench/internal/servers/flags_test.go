package servers

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestServersMayBeAConnectString(t *testing.T) {
	for _, test := range []struct {
		args   []string
		chroot string
		wrong  string
	}{
		{args: []string{"-servers", "h1:2181,h2/app"}, chroot: "/app"},
		{args: []string{"-servers", "h1:2181,h2", "-chroot", "/app"}, chroot: "/app"},
		{args: []string{"-servers", "h1:2181,h2/app", "-chroot", "/app"}, chroot: "/app"},
		{args: []string{"-servers", "h1:2181,h2/app", "-chroot", "/b"}, wrong: "-servers has the chroot /app, and -chroot is /b; give one of them"},
		{args: []string{"-servers", "h1/app,h2/app"}, wrong: "the chroot follows the last server"},
		{args: []string{"-servers", "h1,h1/app"}, wrong: "h1:2181 is given twice"},
	} {
		var w Flags
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		w.Add(f)
		given := map[string]bool{}
		err := f.Parse(test.args)
		if err == nil {
			f.Visit(func(f *flag.Flag) { given[f.Name] = true })
			err = w.Check(given)
		}
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%q: %v; want %q", test.args, err, test.wrong)
			}
			continue
		}
		cfg, wrong := w.access.config(w.Servers)
		if err != nil || wrong != nil || cfg.Chroot != test.chroot || !slices.Equal(cfg.Servers, []string{"h1:2181", "h2:2181"}) {
			t.Errorf("%q: %v, %v: %+v", test.args, err, wrong, cfg)
		}
	}
}
