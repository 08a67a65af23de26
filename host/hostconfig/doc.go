// Package hostconfig reads the configuration of host tools: the ZooKeeper servers and the
// plugin to launch. It consists of one HCL file, and of environment variables that override
// values of the file:
//
//	log_level = "warn"               # ZKRECIPES_LOG_LEVEL
//
//	zookeeper {
//	  servers         = ["zk1:2181"] # ZKRECIPES_SERVERS, separated by commas
//	  chroot          = "/apps"      # ZKRECIPES_CHROOT
//	  session_timeout = "10s"        # ZKRECIPES_SESSION_TIMEOUT
//	  connect_timeout = "2s"
//	  max_packet      = 1048575      # bytes, jute.maxbuffer of the servers; ZKRECIPES_MAX_PACKET
//	  max_listing     = 67108864     # bytes of the longest listing; ZKRECIPES_MAX_LISTING
//	  follow_servers  = false        # true: use the members in /zookeeper/config
//	  zookeeper_only  = false        # true: refuse ClickHouse Keeper; ZKRECIPES_ZOOKEEPER_ONLY
//	  acl             = "creator"    # or "world", the default
//
//	  auth {                         # the digest scheme
//	    user          = "backup"     # ZKRECIPES_AUTH_USER
//	    password_file = "password"   # ZKRECIPES_AUTH_PASSWORD_FILE
//	  }
//	  sasl {
//	    mechanism   = "GSSAPI"       # Kerberos; or "DIGEST-MD5", with user and password_file
//	    user        = "backup"       # the principal in the keytab
//	    keytab_file = "app.keytab"   # or ccache_file, without a user
//	    krb5_conf   = "/etc/krb5.conf"
//	    service     = "zookeeper"    # of the servers' principals
//	  }
//	  tls {                          # {} uses the system's certificates
//	    ca_file          = "ca.pem"
//	    certificate_file = "me.pem"
//	    key_file         = "me.key"
//	    server_name      = "zk.example.com"
//	  }
//	}
//
//	plugin {
//	  command       = "/usr/lib/zkrecipes/zkrecipes-plugin" # ZKRECIPES_PLUGIN_COMMAND
//	  directory     = "/usr/lib/zkrecipes"  # searched first if there is no command
//	  checksum      = "9f86d081..."         # SHA-256; ZKRECIPES_PLUGIN_CHECKSUM
//	  args          = []
//	  env           = ["GODEBUG=netdns=go", "KRB5_CONFIG"] # NAME=value, or the host's NAME
//	  start_timeout = "1m"
//	}
//
// Only the servers are required. Unknown names, incomplete blocks and invalid variables are
// errors. File names are relative to the directory of the configuration file. File names in
// variables are relative to the working directory.
//
// # Secrets
//
// The file never contains a password or a key. password_file and key_file name a file with the
// secret, password_env and key_env an environment variable. One newline at the end of a
// password is not part of it. It is an error if everybody may read the file of a password, a
// keytab or a credential cache; on Windows this is not checked. An empty secret or certificate is an error, because it would
// count as missing. No error of this package quotes a secret.
package hostconfig
