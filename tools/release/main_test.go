package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
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

	"github.com/zkrecipes/zkrecipes/host/hostconfig"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"

	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestARelease is `make release` for the platform of the test.
func TestARelease(t *testing.T) {
	testall.Require(t)
	if runtime.GOOS == "windows" {
		t.Skip("unpacks with tar")
	}
	out := filepath.Join(t.TempDir(), "release")
	var said bytes.Buffer
	key := signingKey(t)
	must.Do(t, run(t.Context(), []string{"-version", "v0.9.8", "-platforms", runtime.GOOS + "/" + runtime.GOARCH, "-key", key, "-out", out}, &said))
	name := "zkrecipes_0.9.8_" + runtime.GOOS + "_" + runtime.GOARCH
	files := []string{name + ".cdx.json", name + ".hcl", name + ".tar.gz"}
	if runtime.GOOS == "linux" {
		files = append(files, filepath.Base(onlyFile(t, out, "*.rpm")), filepath.Base(onlyFile(t, out, "*.deb")), "zkrecipes_0.9.8_oci.tar")
	}
	checkSums(t, out, files...)

	if said, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(out, name+".tar.gz"), "-C", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	unpacked := filepath.Join(out, name)
	for _, document := range documents {
		if _, err := os.Stat(filepath.Join(unpacked, document)); err != nil {
			t.Error(err)
		}
	}
	checkHCL(t, filepath.Join(out, name+".hcl"), filepath.Join(unpacked, "zkrecipes-plugin"))
	checkHCL(t, filepath.Join(unpacked, "plugin.hcl"), filepath.Join(unpacked, "zkrecipes-plugin"))

	checkWorks(t, unpacked)
	t.Run("signature", func(t *testing.T) { checkSignature(t, out, key) })
	t.Run("bill of materials", func(t *testing.T) { checkBOM(t, out, unpacked) })
	t.Run("man pages", func(t *testing.T) { checkManPages(t, unpacked) })
	t.Run("completions", func(t *testing.T) { checkCompletions(t, unpacked) })
	t.Run("units", func(t *testing.T) { checkUnits(t, unpacked) })
	t.Run("deb", func(t *testing.T) { checkDeb(t, out) })
	t.Run("rpm", func(t *testing.T) { checkRPM(t, out) })
	t.Run("packages twice", checkPackagesTwice)

	if err := run(t.Context(), []string{"-version", "v0.9.8", "-out", out}, &said); err == nil {
		t.Error("a second release into the same directory is no error")
	}
}

// checkSums checks that SHA256SUMS has the checksums of exactly these files.
func checkSums(t *testing.T, dir string, names ...string) {
	t.Helper()
	sums := must.Get(os.ReadFile(filepath.Join(dir, "SHA256SUMS")))(t)
	var want strings.Builder
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&want, "%x  %s\n", checksum(t, filepath.Join(dir, name)), name)
	}
	if string(sums) != want.String() {
		t.Errorf("SHA256SUMS is\n%s\nnot\n%s", sums, &want)
	}
}

// checkHCL checks that the file is a configuration with the plugin's checksum.
func checkHCL(t *testing.T, file, plugin string) {
	t.Helper()
	t.Setenv("ZKRECIPES_SERVERS", "127.0.0.1:2181")
	cfg := must.Get(hostconfig.Load(file))(t)
	if want := fmt.Sprintf("%x", checksum(t, plugin)); cfg.Plugin.Checksum != want {
		t.Errorf("%s: checksum %q, not %q", file, cfg.Plugin.Checksum, want)
	}
}

// checkWorks checks that all programs in dir have the version, and that zkrecipes works with an empty
// environment: it finds the plugin beside itself, and logs no warning, because both are of one release.
func checkWorks(t *testing.T, dir string) {
	t.Helper()
	for _, program := range programs {
		for _, arg := range []string{"-version", "version"} {
			said, err := exec.CommandContext(t.Context(), filepath.Join(dir, program), arg).CombinedOutput()
			if want := program + " v0.9.8 ("; err != nil || !strings.HasPrefix(string(said), want) {
				t.Errorf("%s %s: %v: %q does not begin with %q", program, arg, err, said, want)
			}
		}
	}
	server := must.Get(zkserver.Listen(zkserver.Config{}))(t)
	defer server.Close()
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask
		t.Fatal(err)
	}
	must.Do(t, os.Chmod(filepath.Dir(dir), 0o755))
	tool := filepath.Join(dir, "zkrecipes")
	for want, args := range map[string][]string{
		`^0\n$`:                                 {"queue", "len", "/q"},
		`^STATE  KIND .*\nholds  lock .*\n$`:    {"lock", "/l", "--", tool, "contenders", "/l"},
		`^STATE  KIND .*\nleads  elect.* me\n$`: {"elect", "-data", "me", "/e", "--", tool, "contenders", "/e"},
		`version +plugin v0\.9\.8, zkrecipes v0\.9\.8, protocol 1\n`: {"doctor"},
	} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Env = []string{"ZKRECIPES_SERVERS=" + server.Addr()}
		cmd.Dir = t.TempDir()
		if said, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(want).Match(said) {
			t.Errorf("%q: %v: an installed release prints\n%s\nnot %s", args, err, said, want)
		}
	}
}

func checksum(t *testing.T, file string) [sha256.Size]byte {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	return sha256.Sum256(data)
}

func TestAReleaseForWindowsIsAZip(t *testing.T) {
	dir := t.TempDir()
	when := time.Date(2026, 11, 22, 9, 41, 12, 0, time.UTC)
	w := target{version: "v1.2.3-rc.1", goos: "windows", goarch: "arm64", time: when}
	must.Do(t, w.pack(dir, fstest.MapFS{"zkrecipes.exe": {Mode: 0o755, Data: []byte("program")}, "LICENSE": {Mode: 0o644, Data: []byte("text")}}))
	archive := must.Get(zip.OpenReader(filepath.Join(dir, "zkrecipes_1.2.3-rc.1_windows_arm64.zip")))(t)
	defer archive.Close()
	var got []string
	for _, f := range archive.File {
		r := must.Get(f.Open())(t)
		data := must.Get(io.ReadAll(r))(t)
		got = append(got, fmt.Sprintf("%s %v %s %q", f.Name, f.Mode(), f.Modified.UTC().Format(time.RFC3339), data))
	}
	want := []string{
		`zkrecipes_1.2.3-rc.1_windows_arm64/ drwxr-xr-x 2026-11-22T09:41:12Z ""`,
		`zkrecipes_1.2.3-rc.1_windows_arm64/LICENSE -rw-r--r-- 2026-11-22T09:41:12Z "text"`,
		`zkrecipes_1.2.3-rc.1_windows_arm64/zkrecipes.exe -rwxr-xr-x 2026-11-22T09:41:12Z "program"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive holds\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The tar has no owner, and no time but that of the commit, so each build gives the same bytes.
func TestAnArchiveDependsOnItsFilesOnly(t *testing.T) {
	dir := t.TempDir()
	when := time.Date(2026, 11, 22, 9, 41, 12, 0, time.UTC)
	l := target{version: "v1.2.3", goos: "linux", goarch: "arm64", time: when}
	must.Do(t, l.pack(dir, fstest.MapFS{"zkrecipes": {Mode: 0o755, Data: []byte("program")}}))
	f := must.Get(os.Open(filepath.Join(dir, "zkrecipes_1.2.3_linux_arm64.tar.gz")))(t)
	defer f.Close()
	unzipped := must.Get(gzip.NewReader(f))(t)
	var got []string
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d %s%s %d %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.Size, h.ModTime.UTC().Format(time.RFC3339)))
	}
	want := []string{
		"zkrecipes_1.2.3_linux_arm64/ 755 0:0  0 2026-11-22T09:41:12Z",
		"zkrecipes_1.2.3_linux_arm64/zkrecipes 755 0:0  7 2026-11-22T09:41:12Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the archive holds\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAReleaseNeedsASemanticVersion(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1.0-dirty tree"} {
		err := run(t.Context(), []string{"-version", version, "-out", filepath.Join(t.TempDir(), "release")}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "give a semantic version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

// Without VERSION, only the code of a tag gets the tag's name.
func TestAReleaseByMakeHasTheNameOfItsCode(t *testing.T) {
	need(t, "make", "git")
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "Makefile"), must.Get(os.ReadFile(filepath.Join("..", "..", "Makefile")))(t), 0o644))
	git := func(args ...string) {
		says(t, nil, append([]string{"git", "-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	}
	made := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", dir, "release", "GO=echo go"}, args...)...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "VERSION=") || strings.HasPrefix(v, "MAKE") })
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	check := func(state, want string, args ...string) {
		t.Helper()
		if out := made(args...); !strings.Contains(out, want) {
			t.Errorf("%s: %q is not in\n%s", state, want, out)
		}
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "-m", "one")
	check("no tag", "set VERSION")
	git("tag", "v0.1.0")
	check("the tag", "run ./release -version v0.1.0 ")
	git("commit", "--quiet", "--allow-empty", "-m", "two")
	check("a commit after the tag", "set VERSION")
	check("VERSION", "run ./release -version v0.2.0 ", "VERSION=v0.2.0")
	git("tag", "v0.1.1")
	must.Do(t, os.WriteFile(filepath.Join(dir, "Makefile"), append(must.Get(os.ReadFile(filepath.Join(dir, "Makefile")))(t), '\n'), 0o644))
	check("a tag and a change", "run ./release -version v0.1.1-dirty ")
}
