package report_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// chromium returns the path of a headless browser. Without one it skips the test with a message.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("SKIPPED: no chromium on the PATH, so the page was not rendered (Debian: apt-get install chromium)")
	return ""
}

// browse loads a file and returns the page as the browser rendered it, and its log.
func browse(t *testing.T, browser, file string, flags ...string) (dom, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr", "--v=0",
	}, flags...)
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+file)...)
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}

// TestPageRendersInABrowser adds a script to a copy of the page, which reads the rendered page.
// The page itself has no scripts.
func TestPageRendersInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while")
	}
	browser := chromium(t)
	const script = `<script>
const figures = [...document.querySelectorAll('svg[role=img]')];
const named = figures.filter(f => f.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)?.textContent.length > 10));
const drawn = figures.filter(f => f.getBoundingClientRect().width > 200 && f.querySelector('.line').getTotalLength() > 20);
const wide = document.documentElement.scrollWidth > window.innerWidth + 1;
const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
const scrolls = [...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0);
document.body.setAttribute('data-checked', [figures.length, named.length, drawn.length, wide, new Set(ids).size === ids.length, scrolls].join(' '));
</script></body>`
	file := filepath.Join(t.TempDir(), "page.html")
	text := strings.Replace(string(page(t)), "</body>", script, 1)
	must.Do(t, os.WriteFile(file, []byte(text), 0o666))
	figures := strings.Count(text, `<svg class="zk"`)
	for _, size := range []string{"1280,900", "500,800"} {
		dom, log := browse(t, browser, file, "--window-size="+size, "--dump-dom")
		// The number of figures, of named ones and of drawn ones; nothing is wider than
		// the page; ids are unique; the keyboard reaches everything that scrolls.
		if want := fmt.Sprintf(`data-checked="%d %[1]d %[1]d false true true"`, figures); figures < 8 || !strings.Contains(dom, want) {
			at := strings.Index(dom, "data-checked")
			t.Errorf("window %s: the browser found %.60q", size, dom[max(0, at):])
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "CONSOLE") {
				t.Errorf("window %s: console: %s", size, line)
			}
		}
	}
}
