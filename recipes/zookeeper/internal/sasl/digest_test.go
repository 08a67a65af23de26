package sasl

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func chris() *digest {
	return &digest{began: true, cfg: recipes.SASL{User: "chris", Password: "secret"}, uri: "imap/elwood.innosoft.com", cnonce: "OA6MHXh6VqTrRk"}
}

const challenge = `realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`

// The exchange is the example of RFC 2831, section 4.
func TestTheExampleOfTheRFC(t *testing.T) {
	d := chris()
	d.began = false
	if first, err := d.Next(nil); first == nil || len(first) > 0 || err != nil {
		t.Errorf("first token %q, %v; want an empty one", first, err)
	}
	response, err := d.Next([]byte(challenge))
	if err != nil || !strings.Contains(string(response), "response=d388dad90d4bbd760a152321f2143af7,") {
		t.Errorf("%s, %v", response, err)
	}
	if last, err := d.Next([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); last != nil || err != nil {
		t.Errorf("%q, %v; want the end", last, err)
	}
}

func TestAServerThatDoesNotKnowThePasswordIsRefused(t *testing.T) {
	for _, proof := range []string{"", "rspauth=", "rspauth=d388dad90d4bbd760a152321f2143af7"} {
		d := chris()
		must.Get(d.Next([]byte(challenge)))(t)
		if _, err := d.Next([]byte(proof)); err == nil {
			t.Errorf("%q is accepted", proof)
		}
	}
}

func TestChallengesThatAreRefused(t *testing.T) {
	if _, err := chris().Next(nil); !errors.Is(err, ErrNotOffered) {
		t.Error(err)
	}
	for _, bad := range []string{
		"nonsense", `nonce="x`, `algorithm=md5-sess`, `nonce="x",algorithm=md5`, strings.Replace(challenge, `"auth"`, `"auth-int"`, 1),
		strings.Replace(challenge, `"auth"`, `"auth-int,auth-conf"`, 1), challenge + `,nonce="another"`, challenge + `,realm="another"`, "realm" + strings.Repeat("=", 60<<10),
	} {
		if response, err := chris().Next([]byte(bad)); err == nil {
			t.Errorf("%q is answered: %s", bad, response)
		}
	}
	for _, good := range []string{`nonce="x",algorithm=md5-sess`, ` nonce=x , algorithm=md5-sess`, strings.Replace(challenge, `"auth"`, `"auth-conf, auth"`, 1)} {
		if _, err := chris().Next([]byte(good)); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// Without a charset in the challenge, the response has none, and the user is in ISO 8859-1.
func TestAChallengeWithoutACharset(t *testing.T) {
	for sent, want := range map[string]string{challenge: "charset=utf-8,username=\"jörg\",", strings.TrimSuffix(challenge, ",charset=utf-8"): "username=\"j\xf6rg\","} {
		d := chris()
		d.cfg.User = "jörg"
		if response := must.Get(d.Next([]byte(sent)))(t); !strings.HasPrefix(string(response), want) {
			t.Errorf("%s: %q; want %q", sent, response, want)
		}
	}
}

func TestQuotes(t *testing.T) {
	d := chris()
	d.cfg.User = `a"b\c`
	response, err := d.Next([]byte(`nonce="x\"y\\",algorithm=md5-sess`))
	if err != nil || !strings.Contains(string(response), `username="a\"b\\c",`) || !strings.Contains(string(response), `nonce="x\"y\\",`) {
		t.Errorf("%s, %v", response, err)
	}
}

// A server's token never makes the client panic.
func FuzzServersTokens(f *testing.F) {
	f.Add([]byte(challenge))
	f.Add([]byte("\x05\x04\x01\xff\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00............"))
	f.Fuzz(func(t *testing.T, token []byte) {
		_, _ = chris().Next(token)
		if answer, err := (&exchange{key: aes()}).Next(token); err == nil {
			t.Errorf("accepted %x, and answered %x", token, answer)
		}
	})
}
