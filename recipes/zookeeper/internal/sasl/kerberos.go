package sasl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/krberror"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// refusal is an error that a repetition does not change, of the KDC or of a file.
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

const margin = time.Minute // before its end, a ticket is not used any more: clocks differ

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
// gokrb5 takes no context: it waits 5 s for each KDC, by UDP and by TCP. So a goroutine asks, and
// it may run for longer than ctx and the session. A session has at most one for each server, and
// its next attempt waits for the same one.
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
		if p := recover(); p != nil { // of gokrb5, if a file or a message is truncated
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
