package partition_test

// lengthEnv asks for the run on real servers, and says for how long: "60s", "10m".
const lengthEnv = "ZKRECIPES_PARTITION"

// clientEnv makes the test binary a client process and has its number and the addresses of the servers.
const clientEnv = "ZKRECIPES_PARTITION_CLIENT"
