package sasl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
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

// refusal is an error that a repetition does not change: a refusal of the KDC, or a file that
// cannot be used.
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

// margin is how long before its end a ticket is not used any more. It allows for the difference
// of two clocks.
const margin = time.Minute

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
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer from the KDC: %w", ctx.Err())
	}
	if f.err != nil {
		return nil, f.err
	}
	return newGSSAPI(f.ticket)
}

// request gets a ticket for the service from the KDC.
func request(cfg recipes.SASL, service string) (t ticket, err error) {
	defer func() {
		// gokrb5 panics if a file or a message is truncated.
		if p := recover(); p != nil {
			err = fmt.Errorf("%s%s or an answer of the KDC is malformed", cfg.Keytab, cfg.CCache)
		}
		var network krberror.Krberror
		if err != nil && !(errors.As(err, &network) && network.RootCause == krberror.NetworkingError) {
			err = refusal{err}
		}
	}()
	path := cmp.Or(cfg.Krb5Conf, "/etc/krb5.conf")
	conf, err := config.Load(path)
	if unsupported := (config.UnsupportedDirective{}); err != nil && !errors.As(err, &unsupported) {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	of, err := principal(cfg, conf)
	if err != nil {
		return t, err
	}
	defer of.Destroy()
	t.user, t.realm = of.Credentials.CName(), of.Credentials.Domain()
	if _, _, err := conf.GetKDCs(t.realm, true); err != nil && !conf.LibDefaults.DNSLookupKDC {
		return t, fmt.Errorf("%s has no kdc for the realm %q", path, t.realm)
	}
	granting, err := grantingTicket(cfg, conf, of.Client, of.cache)
	if err != nil {
		return t, err
	}
	_, reply, err := of.TGSREQGenerateAndExchange(types.NewPrincipalName(nametype.KRB_NT_SRV_HST, service), t.realm, granting.Ticket, granting.key, false)
	if err != nil {
		return t, fmt.Errorf("get a ticket for %s in realm %s: %w", service, t.realm, err)
	}
	t.Ticket, t.key, t.end = reply.Ticket, reply.DecryptedEncPart.Key, reply.DecryptedEncPart.EndTime
	return t, nil
}

// owner is the principal of this process.
type owner struct {
	*client.Client
	cache *credentials.CCache // nil: the client has a keytab
}

func principal(cfg recipes.SASL, conf *config.Config) (owner, error) {
	content, err := os.ReadFile(cfg.Keytab + cfg.CCache)
	if err != nil {
		return owner{}, err
	}
	// Errors of gokrb5 quote the content.
	if cfg.CCache != "" {
		cache := new(credentials.CCache)
		if cache.Unmarshal(content) != nil {
			return owner{}, fmt.Errorf("%s is not a credential cache", cfg.CCache)
		}
		of, err := client.NewFromCCache(cache, conf)
		if err != nil {
			return owner{}, fmt.Errorf("%s has no ticket of its principal's realm; run kinit", cfg.CCache)
		}
		return owner{of, cache}, nil
	}
	keys := keytab.New()
	if keys.Unmarshal(content) != nil {
		return owner{}, fmt.Errorf("%s is not a keytab", cfg.Keytab)
	}
	name, realm, _ := strings.Cut(cfg.User, "@")
	// Active Directory refuses clients that offer FAST.
	return owner{client.NewWithKeytab(name, cmp.Or(realm, conf.LibDefaults.DefaultRealm), keys, conf, client.DisablePAFXFAST(true)), nil}, nil
}

// grantingTicket returns a ticket-granting ticket: from the cache, or else from the KDC. It does not
// use Client.Login, which starts a goroutine that renews the ticket.
func grantingTicket(cfg recipes.SASL, conf *config.Config, of *client.Client, cache *credentials.CCache) (t ticket, err error) {
	realm := of.Credentials.Domain()
	if cache == nil {
		ask, err := messages.NewASReqForTGT(realm, conf, of.Credentials.CName())
		if err != nil {
			return t, err
		}
		reply, err := of.ASExchange(realm, ask, 0)
		if err != nil {
			return t, fmt.Errorf("log in as %s@%s with the keytab %s: %w", of.Credentials.CName().PrincipalNameString(), realm, cfg.Keytab, err)
		}
		return ticket{Ticket: reply.Ticket, key: reply.DecryptedEncPart.Key}, nil
	}
	found, _ := cache.GetEntry(types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "krbtgt/"+realm)) // NewFromCCache has found it
	if time.Now().After(found.EndTime) {
		return t, fmt.Errorf("the ticket in %s expired at %s; run kinit", cfg.CCache, found.EndTime.Local().Format(time.RFC3339))
	}
	err = t.Unmarshal(found.Ticket)
	t.key = found.Key
	return t, err
}
