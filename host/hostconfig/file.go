package hostconfig

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The types into which gohcl decodes the file. Values stay attributes until they are used,
// so that an error can name their line.
type (
	file struct {
		LogLevel  *hcl.Attribute  `hcl:"log_level,optional"`
		ZooKeeper *zookeeperBlock `hcl:"zookeeper,block"`
		Plugin    *pluginBlock    `hcl:"plugin,block"`
	}
	zookeeperBlock struct {
		Servers        *hcl.Attribute `hcl:"servers,optional"`
		Chroot         *hcl.Attribute `hcl:"chroot,optional"`
		SessionTimeout *hcl.Attribute `hcl:"session_timeout,optional"`
		ConnectTimeout *hcl.Attribute `hcl:"connect_timeout,optional"`
		MaxPacket      *hcl.Attribute `hcl:"max_packet,optional"`
		MaxListing     *hcl.Attribute `hcl:"max_listing,optional"`
		FollowServers  *hcl.Attribute `hcl:"follow_servers,optional"`
		ZooKeeperOnly  *hcl.Attribute `hcl:"zookeeper_only,optional"`
		ACL            *hcl.Attribute `hcl:"acl,optional"`
		Auth           *authBlock     `hcl:"auth,block"`
		SASL           *saslBlock     `hcl:"sasl,block"`
		TLS            *tlsBlock      `hcl:"tls,block"`
	}
	authBlock struct {
		User         *hcl.Attribute `hcl:"user,optional"`
		Password     *hcl.Attribute `hcl:"password,optional"` // refused; the error says where it belongs
		PasswordFile *hcl.Attribute `hcl:"password_file,optional"`
		PasswordEnv  *hcl.Attribute `hcl:"password_env,optional"`
		Range        hcl.Range      `hcl:",def_range"`
	}
	saslBlock struct {
		Mechanism    *hcl.Attribute `hcl:"mechanism,optional"`
		User         *hcl.Attribute `hcl:"user,optional"`
		Password     *hcl.Attribute `hcl:"password,optional"` // refused
		PasswordFile *hcl.Attribute `hcl:"password_file,optional"`
		PasswordEnv  *hcl.Attribute `hcl:"password_env,optional"`
		KeytabFile   *hcl.Attribute `hcl:"keytab_file,optional"`
		CCacheFile   *hcl.Attribute `hcl:"ccache_file,optional"`
		Krb5Conf     *hcl.Attribute `hcl:"krb5_conf,optional"`
		Service      *hcl.Attribute `hcl:"service,optional"`
		Range        hcl.Range      `hcl:",def_range"`
	}
	tlsBlock struct {
		CAFile          *hcl.Attribute `hcl:"ca_file,optional"`
		CertificateFile *hcl.Attribute `hcl:"certificate_file,optional"`
		KeyFile         *hcl.Attribute `hcl:"key_file,optional"`
		KeyEnv          *hcl.Attribute `hcl:"key_env,optional"`
		ServerName      *hcl.Attribute `hcl:"server_name,optional"`
		AnyName         *hcl.Attribute `hcl:"any_name,optional"`
		Range           hcl.Range      `hcl:",def_range"`
	}
	pluginBlock struct {
		Command      *hcl.Attribute `hcl:"command,optional"`
		Args         *hcl.Attribute `hcl:"args,optional"`
		Env          *hcl.Attribute `hcl:"env,optional"`
		Checksum     *hcl.Attribute `hcl:"checksum,optional"`
		Directory    *hcl.Attribute `hcl:"directory,optional"`
		StartTimeout *hcl.Attribute `hcl:"start_timeout,optional"`
	}
)

// reader builds a Config and collects the mistakes.
type reader struct {
	cfg  Config
	dir  string // of the file
	errs []error

	creator *hcl.Attribute // an acl that needs credentials
}

func (r *reader) err() error { return errors.Join(r.errs...) }

func (r *reader) diagnose(diags hcl.Diagnostics) {
	for _, d := range diags {
		r.errs = append(r.errs, d)
	}
}

// wrong reports a mistake at a position of the file.
func (r *reader) wrong(at hcl.Range, summary, format string, args ...any) {
	r.diagnose(hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at,
	}})
}

func (r *reader) file(path string) {
	r.dir = filepath.Dir(path)
	// The errors of hclparse say less about a file that cannot be read.
	source, err := os.ReadFile(path)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	if !utf8.Valid(source) || bytes.IndexByte(source, 0) >= 0 {
		r.errs = append(r.errs, fmt.Errorf("%s: not a text file; expected HCL", path))
		return
	}
	parsed, diags := hclparse.NewParser().ParseHCL(source, path)
	if diags.HasErrors() { // most of the errors after the first follow from it
		const most = 5
		r.diagnose(diags[:min(len(diags), most)])
		if more := len(diags) - most; more > 0 {
			r.errs = append(r.errs, fmt.Errorf("%s: and %d more errors", path, more))
		}
		return
	}
	var f file
	r.diagnose(gohcl.DecodeBody(parsed.Body, nil, &f))
	r.logLevel(f.LogLevel)
	if f.ZooKeeper != nil {
		r.zookeeper(f.ZooKeeper)
	}
	if f.Plugin != nil {
		r.plugin(f.Plugin)
	}
}

func (r *reader) zookeeper(b *zookeeperBlock) {
	zk := &r.cfg.ZooKeeper
	var servers []string
	if decode(r, b.Servers, `a list of "host:port"`, &servers) {
		var err error
		if zk.Servers, zk.Chroot, err = recipes.ParseConnectString(strings.Join(servers, ",")); err != nil {
			r.wrong(b.Servers.Expr.Range(), "Invalid servers", "%v", err)
		}
	}
	r.chroot(b.Chroot)
	r.duration(b.SessionTimeout, &zk.SessionTimeout)
	r.duration(b.ConnectTimeout, &zk.ConnectTimeout)
	if decode(r, b.MaxPacket, "a number of bytes", &zk.MaxPacket) {
		r.check(b.MaxPacket, recipes.SessionConfig{Servers: anyServer, MaxPacket: zk.MaxPacket})
	}
	if decode(r, b.MaxListing, "a number of bytes", &zk.MaxListing) {
		r.check(b.MaxListing, recipes.SessionConfig{Servers: anyServer, MaxListing: zk.MaxListing})
	}
	decode(r, b.FollowServers, "true or false", &zk.FollowServers)
	decode(r, b.ZooKeeperOnly, "true or false", &zk.ZooKeeperOnly)
	if b.Auth != nil {
		r.auth(b.Auth)
	}
	if b.SASL != nil {
		r.sasl(b.SASL)
	}
	if b.TLS != nil {
		r.tls(b.TLS)
	}
	r.acl(b.ACL)
}

// chroot reads the attribute of this name. The last server can have the chroot too.
func (r *reader) chroot(a *hcl.Attribute) {
	var given string
	if !decode(r, a, "a path", &given) {
		return
	}
	r.check(a, recipes.SessionConfig{Servers: anyServer, Chroot: given})
	zk := &r.cfg.ZooKeeper
	if zk.Chroot != "" && zk.Chroot != given {
		r.wrong(a.Expr.Range(), "Invalid chroot", "%s disagrees with the chroot of servers, %s; give one of them", given, zk.Chroot)
	}
	zk.Chroot = given
}

var anyServer = []string{"localhost"}

// check calls Normalize of package recipes for one field of the configuration.
func (r *reader) check(a *hcl.Attribute, cfg recipes.SessionConfig) {
	if _, err := cfg.Normalize(); err != nil {
		r.wrong(a.Expr.Range(), "Invalid "+a.Name, "%v", err)
	}
}

func (r *reader) acl(a *hcl.Attribute) {
	var name string
	if !decode(r, a, `"creator" or "world"`, &name) {
		return
	}
	switch {
	case name == "world":
	case name == "creator":
		r.cfg.ZooKeeper.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
		r.creator = a
	default:
		r.wrong(a.Expr.Range(), "Invalid acl", `Expected "creator" or "world", not %q.`, name)
	}
}

func (r *reader) plugin(b *pluginBlock) {
	p := &r.cfg.Plugin
	if decode(r, b.Command, "a path", &p.Path) {
		p.Path = r.relative(p.Path)
	}
	if decode(r, b.Directory, "a path", &p.Dir) {
		p.Dir = r.relative(p.Dir)
	}
	decode(r, b.Args, "a list of strings", &p.Args)
	if decode(r, b.Env, "a list of strings", &p.Env) && slices.ContainsFunc(p.Env, func(e string) bool { return e == "" || e[0] == '=' }) {
		r.wrong(b.Env.Expr.Range(), "Invalid env", `Expected a list of "NAME=value", or "NAME" for a variable of the host.`)
	}
	if decode(r, b.Checksum, "a SHA-256 in hexadecimal", &p.Checksum) && !isChecksum(p.Checksum) {
		r.wrong(b.Checksum.Expr.Range(), "Invalid checksum", "Expected a SHA-256 of 64 hexadecimal digits, as sha256sum prints it.")
	}
	r.duration(b.StartTimeout, &p.StartTimeout)
}

func (r *reader) relative(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

// decode decodes an attribute and reports its success. For a missing attribute it returns
// false, and reports no mistake.
func decode[T any](r *reader, a *hcl.Attribute, expected string, into *T) bool {
	if a == nil {
		return false
	}
	var value T
	diags := gohcl.DecodeExpression(a.Expr, nil, &value)
	for _, d := range diags {
		d.Detail = strings.TrimSuffix(d.Detail, ".") + ". Expected " + expected + "."
	}
	r.diagnose(diags)
	if diags.HasErrors() {
		return false
	}
	*into = value
	return true
}

func (r *reader) duration(a *hcl.Attribute, into *time.Duration) {
	var text string
	if !decode(r, a, durationExpected, &text) {
		return
	}
	d, ok := parseDuration(text)
	if !ok {
		r.wrong(a.Expr.Range(), "Invalid "+a.Name, "Expected %s, not %q.", durationExpected, text)
		return
	}
	*into = d
}

const durationExpected = `a duration of at least "1ms", such as "10s"`

func parseDuration(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= time.Millisecond
}

func (r *reader) logLevel(a *hcl.Attribute) {
	var name string
	if !decode(r, a, levelExpected, &name) {
		return
	}
	if l := hclog.LevelFromString(name); l != hclog.NoLevel {
		r.cfg.LogLevel = l
		return
	}
	r.wrong(a.Expr.Range(), "Invalid log_level", "Expected %s, not %q.", levelExpected, name)
}

const levelExpected = "trace, debug, info, warn, error or off"

func isChecksum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}
