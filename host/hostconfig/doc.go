// Package hostconfig reads the configuration of host tools. It names the servers of
// ZooKeeper and the plugin to launch. It is one HCL file, and environment variables that
// override values of the file:
//
//	log_level = "warn"               # ZKRECIPES_LOG_LEVEL
//
//	zookeeper {
//	  servers         = ["zk1:2181"] # ZKRECIPES_SERVERS, separated by commas
//	  chroot          = "/apps"      # ZKRECIPES_CHROOT
//	  session_timeout = "10s"        # ZKRECIPES_SESSION_TIMEOUT
//	  connect_timeout = "2s"
//	  max_packet      = 1048575      # bytes, jute.maxbuffer of the servers; ZKRECIPES_MAX_PACKET
//	  acl             = "creator"    # or "world", the default
//
//	  auth {                         # the digest scheme
//	    user          = "backup"     # ZKRECIPES_AUTH_USER
//	    password_file = "password"   # ZKRECIPES_AUTH_PASSWORD_FILE
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
//	  start_timeout = "10s"
//	}
//
// Only the servers are needed. Unknown names are errors. So are a block without a part
// that it needs, and a variable that cannot be read. File names are relative to the
// directory of the configuration file, or in a variable to the working directory.
//
// # Secrets
//
// A password or a key is never in the file. password_file and key_file name a file with
// it, password_env and key_env an environment variable. One newline at the end of a
// password's file is not part of it. A file with a password that everybody may read
// is an error. An empty secret or certificate is an error,
// because it would count as none. No error of this package quotes a secret.
package hostconfig
