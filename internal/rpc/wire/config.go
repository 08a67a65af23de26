package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ToConfig converts a configuration to a message. It omits the logger, which is not sent.
func ToConfig(c recipes.SessionConfig) *pb.Config {
	out := &pb.Config{
		Servers:        c.Servers,
		Chroot:         c.Chroot,
		SessionTimeout: ToDuration(c.SessionTimeout),
		ConnectTimeout: ToDuration(c.ConnectTimeout),
		MaxPacket:      int32(c.MaxPacket),
	}
	if c.Digest != nil {
		out.Digest = &pb.Digest{User: c.Digest.User, Password: c.Digest.Password}
	}
	if s := c.SASL; s != nil {
		out.Sasl = &pb.Sasl{
			Mechanism: s.Mechanism, User: s.User, Password: s.Password,
			Keytab: s.Keytab, Ccache: s.CCache, Krb5Conf: s.Krb5Conf, Service: s.Service,
		}
	}
	for _, a := range c.ACL {
		out.Acl = append(out.Acl, &pb.AccessControl{Permissions: int32(a.Permissions), Scheme: a.Scheme, Id: a.ID})
	}
	if c.TLS != nil {
		out.Tls = &pb.TransportSecurity{
			Ca: c.TLS.CA, Certificate: c.TLS.Certificate, Key: c.TLS.Key, ServerName: c.TLS.ServerName,
		}
	}
	return out
}

// Config converts a message to a configuration.
func Config(c *pb.Config) recipes.SessionConfig {
	out := recipes.SessionConfig{
		Servers:        c.GetServers(),
		Chroot:         c.GetChroot(),
		SessionTimeout: c.GetSessionTimeout().AsDuration(),
		ConnectTimeout: c.GetConnectTimeout().AsDuration(),
		MaxPacket:      int(c.GetMaxPacket()),
	}
	if d := c.GetDigest(); d != nil {
		out.Digest = &recipes.Digest{User: d.GetUser(), Password: d.GetPassword()}
	}
	if s := c.GetSasl(); s != nil {
		out.SASL = &recipes.SASL{
			Mechanism: s.GetMechanism(), User: s.GetUser(), Password: s.GetPassword(),
			Keytab: s.GetKeytab(), CCache: s.GetCcache(), Krb5Conf: s.GetKrb5Conf(), Service: s.GetService(),
		}
	}
	for _, a := range c.GetAcl() {
		out.ACL = append(out.ACL, recipes.ACL{Permissions: recipes.Permission(a.GetPermissions()), Scheme: a.GetScheme(), ID: a.GetId()})
	}
	if t := c.GetTls(); t != nil {
		out.TLS = &recipes.TLS{CA: t.GetCa(), Certificate: t.GetCertificate(), Key: t.GetKey(), ServerName: t.GetServerName()}
	}
	return out
}

// ToDuration converts a duration to a message; nil for zero, which means a default.
func ToDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
