package sasl

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// digestURI names the service as ZooKeeper's servers do, on every host.
const digestURI = "zookeeper/zk-sasl-md5"

// digest is an exchange of DIGEST-MD5: an empty token, the server's challenge, the response, and
// the server's proof that it knows the password.
type digest struct {
	cfg    recipes.SASL
	uri    string
	cnonce string // tests set it
	began  bool
	proof  string // what the server must answer
}

func (d *digest) Next(token []byte) ([]byte, error) {
	if !d.began {
		d.began = true
		return []byte{}, nil
	}
	if d.proof != "" {
		if subtle.ConstantTimeCompare(token, []byte(d.proof)) != 1 {
			return nil, errors.New("the server did not prove that it knows the password")
		}
		return nil, nil
	}
	if len(token) == 0 {
		return nil, ErrNotOffered
	}
	challenge := directives(string(token))
	nonce, realm := challenge["nonce"], challenge["realm"]
	if qop := challenge["qop"]; nonce == "" || challenge["algorithm"] != "md5-sess" ||
		qop != "" && !strings.Contains(","+strings.ReplaceAll(qop, " ", "")+",", ",auth,") {
		return nil, errors.New("the server's challenge is not one of DIGEST-MD5 with the quality of protection auth")
	}
	if d.cnonce == "" {
		d.cnonce = rand.Text()
	}
	d.proof = "rspauth=" + d.response(nonce, realm, "")
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	user, charset := d.cfg.User, "charset=utf-8,"
	if challenge["charset"] == "" { // then the RFC demands ISO 8859-1
		user, charset = latin(user), ""
	}
	return fmt.Appendf(nil, charset+`username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth`,
		quote(user), quote(realm), quote(nonce), d.cnonce, d.uri, d.response(nonce, realm, "AUTHENTICATE")), nil
}

// response is the response-value of RFC 2831, section 2.1.2.1. The method is empty in the
// server's proof.
func (d *digest) response(nonce, realm, method string) string {
	secret := md5.Sum([]byte(latin(d.cfg.User) + ":" + latin(realm) + ":" + latin(d.cfg.Password)))
	return sum(sum(string(secret[:])+":"+nonce+":"+d.cnonce) + ":" + nonce + ":00000001:" + d.cnonce + ":auth:" + sum(method+":"+d.uri))
}

func sum(s string) string {
	return fmt.Sprintf("%x", md5.Sum([]byte(s)))
}

// latin encodes s in ISO 8859-1 if that is possible, as the RFC demands, and Java's servers do.
func latin(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		out = append(out, byte(r))
	}
	return string(out)
}

// directives parses a challenge: names with values, which may be quoted. It ignores the rest. It
// returns nothing if a name occurs twice: the RFC lets only the realm, of which ZooKeeper has one.
func directives(s string) map[string]string {
	directive := regexp.MustCompile(`(?s)([a-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))`)
	quoted := regexp.MustCompile(`(?s)\\(.)`)
	found := make(map[string]string)
	for _, m := range directive.FindAllStringSubmatch(s, -1) {
		if _, twice := found[m[1]]; twice {
			return nil
		}
		found[m[1]] = quoted.ReplaceAllString(m[2], "$1") + m[3]
	}
	return found
}
