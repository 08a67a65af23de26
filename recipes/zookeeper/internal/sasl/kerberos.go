package sasl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// refusal is an error, of the KDC or of a file, that a retry does not change.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// ticket is a service ticket, and the principal to which it was issued.
type ticket struct {
	messages.Ticket
	key   types.EncryptionKey
	user  types.PrincipalName
	realm string
	end   time.Time
}

// fetch is a request for a service ticket, and its result.
type fetch struct {
	done   chan struct{}
	ticket ticket
	err    error
}

const margin = time.Minute // how long before its end a ticket is no longer used, because clocks differ

func (f *fetch) stale() bool {
	select {
	case <-f.done:
		return f.err != nil || time.Until(f.ticket.end) < margin
	default:
		return false
	}
}

// kerberos returns the exchange with the server on host.
//
// gokrb5 takes no context: it waits 5 s for each KDC, by UDP and by TCP. So another goroutine
// requests the ticket, and may outlive ctx and the session. A session has at most one such
// goroutine for each server, and the next attempt waits for it.
func (c *Client) kerberos(ctx context.Context, host string) (Exchange, error) {
	service := cmp.Or(c.cfg.Service, "zookeeper")
	if !strings.Contains(service, "/") {
		service += "/" + strings.ToLower(host)
	}
	c.mu.Lock()
	f := c.tickets[service]
	if f == nil || f.stale() {
		f = &fetch{done: make(chan struct{})}
		c.tickets[service] = f
		go func() {
			defer close(f.done)
			f.ticket, f.err = request(c.cfg, service)
		}()
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return newGSSAPI(f.ticket, f.err)
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer from the KDC: %w", ctx.Err())
	}
}

// ignored are lines of krb5.conf that gokrb5 refuses, and does not need. Fedora has
// "dns_canonicalize_hostname = fallback".
var ignored = regexp.MustCompile(`(?m)^\s*(include(dir)?\s|dns_canonicalize_hostname\b).*$`)

func request(cfg recipes.SASL, service string) (t ticket, err error) {
	defer func() {
		if p := recover(); p != nil { // gokrb5 panics if a file or a message is truncated
			err = fmt.Errorf("%s%s or an answer of the KDC is malformed", cfg.Keytab, cfg.CCache)
		}
		var network krberror.Krberror
		if err != nil && !(errors.As(err, &network) && network.RootCause == krberror.NetworkingError) {
			err = refusal{err}
		}
	}()
	path := cmp.Or(cfg.Krb5Conf, "/etc/krb5.conf")
	lines, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	conf, err := config.NewFromString(ignored.ReplaceAllString(string(lines), ""))
	if unsupported := (config.UnsupportedDirective{}); err != nil && !errors.As(err, &unsupported) {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	kdc, granting, err := login(cfg, conf)
	if err != nil {
		return t, err
	}
	defer kdc.Destroy()
	t.user, t.realm = kdc.Credentials.CName(), kdc.Credentials.Domain()
	_, reply, err := kdc.TGSREQGenerateAndExchange(types.NewPrincipalName(nametype.KRB_NT_SRV_HST, service), t.realm, granting.Ticket, granting.key, false)
	if err != nil {
		return t, fmt.Errorf("get a ticket for %s in realm %s: %w", service, t.realm, err)
	}
	t.Ticket, t.key, t.end = reply.Ticket, reply.DecryptedEncPart.Key, reply.DecryptedEncPart.EndTime
	return t, nil
}

// login returns a ticket-granting ticket: from the cache, or by the keytab from the KDC. It does not
// use Client.Login, which starts a goroutine that renews the ticket. Errors of gokrb5 about the
// files are replaced: they quote the content.
func login(cfg recipes.SASL, conf *config.Config) (kdc *client.Client, t ticket, err error) {
	content, err := os.ReadFile(cfg.Keytab + cfg.CCache)
	if err != nil {
		return nil, t, err
	}
	user, realm, _ := strings.Cut(cfg.User, "@")
	realm = cmp.Or(realm, conf.LibDefaults.DefaultRealm)
	cache, keys := new(credentials.CCache), keytab.New()
	if cfg.CCache == "" {
		err = keys.Unmarshal(content)
	} else if err = cache.Unmarshal(content); err == nil {
		user, realm = cache.GetClientPrincipalName().PrincipalNameString(), cache.GetClientRealm()
	}
	if err != nil {
		return nil, t, fmt.Errorf("%s%s is not a keytab or not a credential cache", cfg.Keytab, cfg.CCache)
	}
	if _, _, err := conf.GetKDCs(realm, true); err != nil && !conf.LibDefaults.DNSLookupKDC {
		return nil, t, fmt.Errorf("%s has no kdc for the realm %q", cmp.Or(cfg.Krb5Conf, "/etc/krb5.conf"), realm)
	}
	kdc = client.NewWithKeytab(user, realm, keys, conf, client.DisablePAFXFAST(true)) // Active Directory refuses clients that offer FAST
	if cfg.CCache != "" {
		found, ok := cache.GetEntry(types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+realm))
		if !ok {
			return nil, t, fmt.Errorf("%s has no ticket-granting ticket of %s@%s; run kinit", cfg.CCache, user, realm)
		}
		if time.Now().After(found.EndTime) {
			return nil, t, fmt.Errorf("the ticket of %s@%s in %s expired at %s; run kinit", user, realm, cfg.CCache, found.EndTime.Local().Format(time.RFC3339))
		}
		t.key = found.Key
		return kdc, t, t.Unmarshal(found.Ticket)
	}
	var reply messages.ASRep
	ask, err := messages.NewASReqForTGT(realm, conf, kdc.Credentials.CName())
	if err == nil {
		reply, err = kdc.ASExchange(realm, ask, 0)
	}
	if err != nil {
		return nil, t, fmt.Errorf("log in as %s@%s with the keytab %s: %w", user, realm, cfg.Keytab, err)
	}
	return kdc, ticket{Ticket: reply.Ticket, key: reply.DecryptedEncPart.Key}, nil
}

// exchange is an exchange of GSSAPI: the ticket, the security layers that the server offers, and
// the choice of none.
//
// It asks for no AP-REP, as Java's client does. The server proves who it is by the checksum of its
// offer. Only the owner of the ticket's service can compute it, because the key is new for
// each connection and is encrypted to that service.
type exchange struct {
	first  []byte
	key    types.EncryptionKey
	number int64 // of the next token
	chosen bool
}

// aesOnly are the types of keys whose tokens are those of RFC 4121. The others are deprecated.
var aesOnly = []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192}

// kerberos5 is the object identifier of the mechanism, encoded, and the number of an AP-REQ.
var kerberos5 = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + "\x01\x00")

// newGSSAPI returns the exchange with a ticket, unless there was an error.
func newGSSAPI(t ticket, err error) (Exchange, error) {
	if err != nil {
		return nil, err
	}
	if !slices.Contains(aesOnly, t.key.KeyType) {
		return nil, refusal{fmt.Errorf("the KDC gave a key of type %d; only AES is supported", t.key.KeyType)}
	}
	sender, err := types.NewAuthenticator(t.realm, t.user)
	if err == nil {
		err = sender.GenerateSeqNumberAndSubKey(t.key.KeyType, len(t.key.KeyValue))
	}
	if err != nil {
		return nil, err
	}
	sender.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: make([]byte, 24)} // RFC 4121, section 4.1.1
	sender.Cksum.Checksum[0], sender.Cksum.Checksum[20] = 16, gssapi.ContextFlagInteg
	var encoded []byte
	request, err := messages.NewAPReq(t.Ticket, t.key, sender)
	if err == nil {
		encoded, err = request.Marshal()
	}
	if err != nil {
		return nil, err
	}
	return &exchange{first: asn1tools.AddASNAppTag(slices.Concat(kerberos5, encoded), 0), key: sender.SubKey, number: sender.SeqNumber}, nil
}

func (x *exchange) Next(token []byte) ([]byte, error) {
	switch first := x.first; {
	case first != nil:
		x.first = nil
		return first, nil
	case x.chosen:
		return nil, nil
	case len(token) == 0:
		return nil, ErrNotOffered
	}
	const sealed, acceptorSubkey, noLayer = 2, 4, 1
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(token, true); err != nil || offer.Flags&(sealed|acceptorSubkey) != 0 {
		return nil, errors.New("the server's answer is not one of GSSAPI; it has another mechanism")
	}
	if ok, _ := offer.Verify(x.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, errors.New("the server did not prove that it is the ticket's service")
	}
	if len(offer.Payload) != 4 || offer.Payload[0]&noLayer == 0 {
		return nil, errors.New("the server demands a security layer, which ZooKeeper does not have")
	}
	choice := gssapi.WrapToken{EC: offer.EC, SndSeqNum: uint64(x.number), Payload: []byte{noLayer, 0, 0, 0}}
	if err := choice.SetCheckSum(x.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	x.chosen = true
	return choice.Marshal()
}
