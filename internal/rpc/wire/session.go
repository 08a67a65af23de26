package wire

import (
	"cmp"
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
		MaxListing:     int32(c.MaxListing),
		ReadsPerSecond: int32(c.ReadsPerSecond),
		FollowServers:  c.FollowServers,
		ZookeeperOnly:  c.ZooKeeperOnly,
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
			Ca: c.TLS.CA, Certificate: c.TLS.Certificate, Key: c.TLS.Key,
			CaFile: c.TLS.CAFile, CertificateFile: c.TLS.CertificateFile, KeyFile: c.TLS.KeyFile,
			ServerName: c.TLS.ServerName, AnyName: c.TLS.AnyName,
		}
	}
	return out
}

func Config(c *pb.Config) recipes.SessionConfig {
	out := recipes.SessionConfig{
		Servers:        c.GetServers(),
		Chroot:         c.GetChroot(),
		SessionTimeout: c.GetSessionTimeout().AsDuration(),
		ConnectTimeout: c.GetConnectTimeout().AsDuration(),
		MaxPacket:      int(c.GetMaxPacket()),
		MaxListing:     int(c.GetMaxListing()),
		ReadsPerSecond: int(c.GetReadsPerSecond()),
		FollowServers:  c.GetFollowServers(),
		ZooKeeperOnly:  c.GetZookeeperOnly(),
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
		out.TLS = &recipes.TLS{
			CA: t.GetCa(), Certificate: t.GetCertificate(), Key: t.GetKey(),
			CAFile: t.GetCaFile(), CertificateFile: t.GetCertificateFile(), KeyFile: t.GetKeyFile(),
			ServerName: t.GetServerName(), AnyName: t.GetAnyName(),
		}
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

var (
	toStates = map[recipes.State]pb.State{
		recipes.Connected: pb.State_STATE_CONNECTED, recipes.Suspended: pb.State_STATE_SUSPENDED, recipes.Lost: pb.State_STATE_LOST,
	}
	states = map[pb.State]recipes.State{pb.State_STATE_CONNECTED: recipes.Connected, pb.State_STATE_LOST: recipes.Lost}
)

func ToState(s recipes.State) pb.State { return toStates[s] }

// State converts the state in a message. An unknown state becomes Suspended: whatever it
// means, it does not say that a server answers or that the session has ended.
func State(s pb.State) recipes.State { return cmp.Or(states[s], recipes.Suspended) }

// ToStats omits the kind of the servers, which Opened has.
func ToStats(c recipes.Stats) *pb.StatsResponse {
	return &pb.StatsResponse{
		Reads: c.Reads, Writes: c.Writes, Pings: c.Pings, WatchEvents: c.WatchEvents,
		RequestBytes: c.RequestBytes, ResponseBytes: c.ResponseBytes,
		Reconnects: c.Reconnects, Handoffs: c.Handoffs, Fallbacks: c.Fallbacks, Asked: c.Asked, ByKind: c.ByKind,
	}
}

func Stats(c *pb.StatsResponse) recipes.Stats {
	return recipes.Stats{
		Reads: c.GetReads(), Writes: c.GetWrites(), Pings: c.GetPings(), WatchEvents: c.GetWatchEvents(),
		RequestBytes: c.GetRequestBytes(), ResponseBytes: c.GetResponseBytes(),
		Reconnects: c.GetReconnects(), Handoffs: c.GetHandoffs(), Fallbacks: c.GetFallbacks(), Asked: c.GetAsked(), ByKind: c.GetByKind(),
	}
}

// Windows of HTTP/2's flow control, in bytes, for both ends of a connection.
//
// They are fixed. Otherwise gRPC would size them by the connection's capacity, and measure
// that with a ping for nearly every message. Such a ping costs a message each way and a
// wake-up of each process, without a benefit on a connection that never leaves the machine.
// One ZooKeeper packet fits into a stream's window.
const (
	StreamWindow     = 1 << 20
	ConnectionWindow = 4 << 20
)
