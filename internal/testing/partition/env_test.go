package partition_test

// lengthEnv enables TestPartition and is its length: "60s", "10m".
const lengthEnv = "ZKRECIPES_PARTITION"

// rollingEnv enables TestRollingUpgrade. It contains the folders of two installations of
// ZooKeeper, each as in ZOOKEEPER_HOME.
const rollingEnv = "ZKRECIPES_ROLLING"

// clientEnv makes the test binary a client process. It contains the number of the client and
// the addresses of the servers.
const clientEnv = "ZKRECIPES_PARTITION_CLIENT"
