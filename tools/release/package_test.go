package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// need skips the test if a program is missing, or fails it if ZKRECIPES_REQUIRE_PACKAGING is set.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("ZKRECIPES_REQUIRE_PACKAGING") != "" {
			t.Fatalf("ZKRECIPES_REQUIRE_PACKAGING is set, but there is no %s", program)
		}
		t.Skipf("SKIPPED: there is no %s; .ci/suite release installs it", program)
	}
}

// says runs a command and returns its output. env is added to the environment.
func says(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

func onlyFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	found := must.Get(filepath.Glob(filepath.Join(dir, pattern)))(t)
	if len(found) != 1 {
		t.Fatalf("%s: %q", pattern, found)
	}
	return found[0]
}

// signingKey returns the file of a new key.
func signingKey(t *testing.T) string {
	need(t, "ssh-keygen")
	file := filepath.Join(t.TempDir(), "key")
	says(t, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file)
	return file
}

// checkSignature verifies SHA256SUMS by the command of docs/operating.md.
func checkSignature(t *testing.T, out, key string) {
	allowed := filepath.Join(t.TempDir(), "allowed_signers")
	public := must.Get(os.ReadFile(key + ".pub"))(t)
	must.Do(t, os.WriteFile(allowed, append([]byte("zkrecipes "), public...), 0o644))
	verify := func(sums []byte) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "zkrecipes", "-n", "file", "-s", filepath.Join(out, "SHA256SUMS.sig"))
		cmd.Stdin = bytes.NewReader(sums)
		return cmd.Run()
	}
	sums := must.Get(os.ReadFile(filepath.Join(out, "SHA256SUMS")))(t)
	must.Report(t, verify(sums))
	if verify(append(sums, '\n')) == nil {
		t.Error("the signature fits a changed SHA256SUMS")
	}
}

func TestSHA256SUMSWithoutAKeyIsReported(t *testing.T) {
	var said strings.Builder
	must.Do(t, signSums(t.Context(), t.TempDir(), "", &said))
	if !strings.Contains(said.String(), "IS NOT SIGNED") {
		t.Errorf("it says %q", &said)
	}
}

func TestABadKeyFailsBeforeTheBuilds(t *testing.T) {
	need(t, "ssh-keygen")
	out := filepath.Join(t.TempDir(), "release")
	file := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(file, []byte("no key"), 0o600))
	for _, key := range []string{file, file + ".missing"} {
		err := run(t.Context(), []string{"-version", "v0.9.8", "-key", key, "-out", out}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "ssh-keygen cannot sign with it") {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("the directory exists")
		}
	}
}

// checkBOM checks that the bill of materials has what is linked, with versions and licenses,
// and nothing that changes with the time or the machine.
func checkBOM(t *testing.T, out, unpacked string) {
	text := must.Get(os.ReadFile(onlyFile(t, out, "*.cdx.json")))(t)
	var bom struct {
		Metadata struct {
			Component struct{ Version, PURL string }
		}
		Components []struct{ Name, Version string }
	}
	must.Do(t, json.Unmarshal(text, &bom))
	if c := bom.Metadata.Component; c.Version != "v0.9.8" || c.PURL != "pkg:golang/github.com/zkrecipes/zkrecipes@v0.9.8" {
		t.Errorf("the main component is %+v", c)
	}
	has := map[string]string{}
	for _, c := range bom.Components {
		has[c.Name] = c.Version
	}
	for _, program := range programs {
		linked := says(t, nil, "go", "version", "-m", filepath.Join(unpacked, program))
		modules := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(linked, -1)
		for _, m := range modules {
			if has[m[1]] != m[2] {
				t.Errorf("%s contains %s %s, and the bill %q", program, m[1], m[2], has[m[1]])
			}
		}
		if len(modules) == 0 || has["std"] == "" {
			t.Errorf("%s has %d modules, std is %q", program, len(modules), has["std"])
		}
	}
	for _, changing := range []string{"timestamp", "serialNumber", `"MD5"`, unpacked} {
		if bytes.Contains(text, []byte(changing)) {
			t.Errorf("the bill has %s", changing)
		}
	}
	again := t.TempDir()
	must.Do(t, target{version: "v0.9.8", goos: runtime.GOOS, goarch: runtime.GOARCH}.writeBOM(t.Context(), again, unpacked))
	if !bytes.Equal(text, must.Get(os.ReadFile(onlyFile(t, again, "*.cdx.json")))(t)) {
		t.Error("another run has another result")
	}
}

// completed returns what zkrecipes prints to a shell that completes the line.
func completed(t *testing.T, unpacked, line string) []string {
	return strings.Fields(says(t, []string{"ZKRECIPES_CONFIG="}, filepath.Join(unpacked, "zkrecipes"), "-complete", "zsh", line))
}

// checkManPages checks that each verb that is completed has a page, and that the pages have no
// mistakes.
func checkManPages(t *testing.T, unpacked string) {
	pages := must.Get(filepath.Glob(filepath.Join(unpacked, "man", "*.1")))(t)
	want := []string{"zkbench", "zkbench-run", "zkrecipes", "zkrecipes-plugin"}
	for _, verb := range completed(t, unpacked, "zkrecipes ") {
		if verb == "help" {
			continue
		}
		want = append(want, "zkrecipes-"+verb)
		for _, second := range completed(t, unpacked, "zkrecipes "+verb+" ") {
			want = append(want, "zkrecipes-"+verb+"-"+second)
		}
	}
	if len(want) < 40 {
		t.Errorf("only these pages are expected: %q", want)
	}
	for _, name := range want {
		if !slices.Contains(pages, filepath.Join(unpacked, "man", name+".1")) {
			t.Errorf("there is no page %s", name)
		}
	}
	t.Run("mandoc", func(t *testing.T) {
		need(t, "mandoc")
		says(t, nil, append([]string{"mandoc", "-Tlint", "-Wwarning"}, pages...)...)
	})
	t.Run("groff", func(t *testing.T) {
		need(t, "groff")
		if warnings := says(t, nil, append([]string{"groff", "-man", "-ww", "-Tutf8", "-z"}, pages...)...); warnings != "" {
			t.Error(warnings)
		}
	})
	t.Run("man", func(t *testing.T) {
		need(t, "man")
		text := says(t, []string{"MANWIDTH=100", "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING="}, "man", "-l", filepath.Join(unpacked, "man", "zkrecipes-queue-put.1"))
		for _, want := range []string{
			"zkrecipes-queue-put - Put elements into a queue",
			"zkrecipes queue put [flags] PATH [--] DATA...|-",
			"\n           zkrecipes queue put /mail 'to alice' 'to bob'\n",
			"EXIT STATUS\n",
			"-session-timeout duration\n", // only the long help has it
			"zkrecipes-queue(1)",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
	})
}

func TestHelpBecomesAManPage(t *testing.T) {
	p := page{words: []string{"zkrecipes", "lock"}, about: "Run it", help: "Usage: zkrecipes lock [flags]\n\nWaits. \\n 'é'\n.sh is a name.\n\nExamples:\n\n    a -b\n\n    .c\n\nExit code: 0. Otherwise:\n\n    1    no\n\nFlags:\n\n  -a text\n    \tone\n  -v\ttwo\n    \tthree"}
	got := p.roff("v1.2.3", time.Date(2026, 11, 22, 9, 41, 12, 0, time.UTC))
	want := `.TH ZKRECIPES\-LOCK 1 2026-11-22 "zkrecipes 1.2.3"
.SH NAME
zkrecipes\-lock \- Run it
.SH SYNOPSIS
zkrecipes lock [flags]
.SH DESCRIPTION
Waits. \en \(aq\[u00E9]\(aq
\&.sh is a name.
.SH EXAMPLES
.RS 4
.nf
a \-b

\&.c
.fi
.RE
.SH EXIT STATUS
Exit code: 0. Otherwise:
.PP
.RS 4
.nf
1    no
.fi
.RE
.SH FLAGS
.TP
\fB\-a\fI text\fR
one
.TP
\fB\-v\fI\fR
two
three
.SH SEE ALSO
\fBzkrecipes\fR(1)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// checkCompletions completes "zkrecipes queue t" in each shell.
func checkCompletions(t *testing.T, unpacked string) {
	scripts := filepath.Join(unpacked, "completions")
	env := []string{"PATH=" + unpacked + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=dumb", "ZKRECIPES_CONFIG="}
	t.Run("bash", func(t *testing.T) {
		need(t, "bash", "script")
		cmd := exec.CommandContext(t.Context(), "script", "-qec", "bash --norc --noprofile -i", "/dev/null")
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdin = strings.NewReader("source '" + scripts + "/zkrecipes.bash'\nzkrecipes queue ta\t -h | head -1\nexit\n")
		said, err := cmd.CombinedOutput()
		if !strings.Contains(string(said), "Usage: zkrecipes queue take ") {
			t.Errorf("%v: %s", err, said)
		}
	})
	t.Run("zsh", func(t *testing.T) {
		need(t, "zsh")
		terminal := filepath.Join(t.TempDir(), "terminal.zsh")
		must.Do(t, os.WriteFile(terminal, []byte(`zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w -n z $'zkrecipes queue ta\t -h | head -1\n'
zpty -r -m z out '*Usage: zkrecipes queue take *'
zpty -d z
print -r -- "$out"
`), 0o644))
		if said := says(t, env, "zsh", "-f", terminal, scripts); !strings.Contains(said, "Usage: zkrecipes queue take ") {
			t.Error(said)
		}
	})
	t.Run("fish", func(t *testing.T) {
		need(t, "fish")
		said := says(t, env, "fish", "--no-config", "-c", "source '"+scripts+"/zkrecipes.fish'; complete -C 'zkrecipes queue t'")
		if said != "take\n" {
			t.Error(said)
		}
	})
}

// checkUnits verifies the units with the unpacked program in place of the installed one.
func checkUnits(t *testing.T, unpacked string) {
	need(t, "systemd-analyze")
	files := must.Get(filepath.Glob(filepath.Join("packaging", "*@.*")))(t)
	dir := t.TempDir() // a timer finds its service there
	var units []string
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		text = bytes.ReplaceAll(text, []byte("/usr/bin/zkrecipes"), []byte(filepath.Join(unpacked, "zkrecipes")))
		unit := strings.Replace(filepath.Base(file), "@", "@job", 1)
		must.Do(t, os.WriteFile(filepath.Join(dir, unit), text, 0o644))
		units = append(units, unit)
	}
	if want := []string{"zkrecipes-elect@job.service", "zkrecipes-lock@job.service", "zkrecipes-lock@job.timer"}; !slices.Equal(units, want) {
		t.Errorf("the units are %q, not %q", units, want)
	}
	for _, unit := range units {
		file := filepath.Join(dir, unit)
		if said := says(t, nil, "systemd-analyze", "verify", "--man=no", file); said != "" {
			t.Errorf("%s: %s", unit, said)
		}
		if strings.HasSuffix(unit, ".service") {
			// The exposure is 5.1 of 10, and 9.2 without the directives.
			says(t, nil, "systemd-analyze", "security", "--no-pager", "--offline=yes", "--threshold=55", file)
		}
	}
}

// inRoot returns a command line that runs as root, or as root of a user namespace.
func inRoot(t *testing.T, args ...string) []string {
	if os.Geteuid() == 0 {
		return args
	}
	need(t, "unshare")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: it needs root, or a user namespace: %v: %s", err, out)
	}
	return append([]string{"unshare", "--map-root-user"}, args...)
}

// everywhere are files of a package, whatever its format.
var everywhere = []string{
	"etc/zkrecipes", "usr/bin/zkbench", "usr/bin/zkrecipes", "usr/bin/zkrecipes-plugin",
	"usr/lib/systemd/system/zkrecipes-elect@.service", "usr/lib/systemd/system/zkrecipes-lock@.service", "usr/lib/systemd/system/zkrecipes-lock@.timer",
	"usr/lib/sysusers.d/zkrecipes.conf", "usr/share/bash-completion/completions/zkrecipes", "usr/share/doc/zkrecipes/NOTICE",
	"usr/share/doc/zkrecipes/README.md", "usr/share/doc/zkrecipes/CHANGELOG.md", "usr/share/fish/vendor_completions.d/zkrecipes.fish",
	"usr/share/man/man1/zkrecipes.1.gz", "usr/share/man/man1/zkrecipes-lock.1.gz", "usr/share/man/man1/zkbench-run.1.gz",
}

// checkInstalled checks files in a root. A file that another user owns could be changed by that
// user.
func checkInstalled(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range slices.Concat(everywhere, names) {
		info, err := os.Stat(filepath.Join(root, name))
		want := os.FileMode(0o644)
		if strings.HasPrefix(name, "usr/bin/") || name == "etc/zkrecipes" {
			want = 0o755
		}
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	checkWorks(t, filepath.Join(root, "usr/bin"))
}

// left returns the files in a root that have the name of the package, and others that keep
// does not match.
func left(t *testing.T, root, keep string) (names []string) {
	must.Do(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err == nil && (!e.IsDir() || strings.Contains(filepath.Base(name), "zkrecipes")) && !regexp.MustCompile(keep).MatchString(name) {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// checkDeb installs the deb in an empty root, and purges it.
func checkDeb(t *testing.T, out string) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has packages")
	}
	need(t, "dpkg")
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "usr/lib/sysusers.d"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	dpkg := func(args ...string) {
		says(t, nil, inRoot(t, append([]string{"dpkg", "--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=/dev/null"}, args...)...)...)
	}
	dpkg("--install", onlyFile(t, out, "*.deb"))
	checkInstalled(t, root, "usr/share/doc/zkrecipes/copyright", "usr/share/zsh/vendor-completions/_zkrecipes")
	keep := "^var/lib/dpkg/[^/]*(/(Lock|Unincorp|format))?$"
	if _, err := exec.LookPath("systemd-sysusers"); err == nil {
		users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
		if !bytes.Contains(users, []byte("zkrecipes:")) {
			t.Errorf("there is no user zkrecipes: %v", err)
		}
		keep += "|^etc/(passwd|shadow|group|gshadow|.pwd.lock)-?$" // Debian removes no users
	}
	dpkg("--purge", "zkrecipes")
	if names := left(t, root, keep); len(names) > 0 {
		t.Errorf("these are left: %q", names)
	}
}

// checkRPM installs the rpm in an empty root, and removes it.
func checkRPM(t *testing.T, out string) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has packages")
	}
	need(t, "rpm")
	root := t.TempDir()
	rpm := func(args ...string) string {
		return says(t, nil, inRoot(t, append([]string{"rpm", "--root=" + root, "--dbpath=/var/lib/rpm", "--nodeps"}, args...)...)...)
	}
	rpm("--install", onlyFile(t, out, "*.rpm"))
	checkInstalled(t, root, "usr/share/licenses/zkrecipes/LICENSE", "usr/share/zsh/site-functions/_zkrecipes")
	rpm("--verify", "zkrecipes")
	rpm("--erase", "zkrecipes")
	if names := left(t, root, "^var/lib/rpm/"); len(names) > 0 {
		t.Errorf("these are left: %q", names)
	}
}

// checkPackagesTwice makes packages of the same files at other places and with other times.
func checkPackagesTwice(t *testing.T) {
	var made [2]map[string][32]byte
	l := target{version: "v1.2.3-rc.1", goos: "linux", goarch: "arm64", time: time.Date(2026, 11, 22, 9, 41, 12, 0, time.UTC)}
	guides := fstest.MapFS{"man/zkrecipes.1": {Data: []byte("page"), Mode: 0o644}}
	for _, name := range []string{"zkrecipes.bash", "_zkrecipes", "zkrecipes.fish"} {
		guides["completions/"+name] = &fstest.MapFile{Data: []byte(name), Mode: 0o644}
	}
	for i := range made {
		dir, out := t.TempDir(), t.TempDir()
		for _, program := range programs {
			file := filepath.Join(dir, program)
			must.Do(t, os.WriteFile(file, []byte(program), []os.FileMode{0o700, 0o775}[i]))
			must.Do(t, os.Chtimes(file, time.Time{}, time.Unix(int64(i)*1e9, 0)))
		}
		must.Do(t, l.packages(t.Context(), out, dir, guides))
		made[i] = map[string][32]byte{}
		for _, entry := range must.Get(os.ReadDir(out))(t) {
			made[i][entry.Name()] = checksum(t, filepath.Join(out, entry.Name()))
		}
	}
	if fmt.Sprint(made[0]) != fmt.Sprint(made[1]) || len(made[0]) != 2 {
		t.Errorf("two runs made\n%v\nand\n%v", made[0], made[1])
	}
}
