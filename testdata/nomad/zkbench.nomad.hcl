# Three load generators on three machines of a cluster, which measure one line
# together:
#
#   nomad job run -var 'servers=zk1:2181,zk2:2181,zk3:2181' zkbench.nomad.hcl
#
# All of them are started with the same flags. They meet at the path of -join, and
# the first to come there writes the results: its stdout is theirs
# (nomad alloc logs), and the records are in its alloc directory. A path of its own
# for each job keeps two jobs apart.

variable "servers" {
  type        = string
  default     = "127.0.0.1:2181"
  description = "The ZooKeeper servers to load, as host:port, separated by commas."
}

variable "workers" {
  type        = number
  default     = 3
  description = "How many load generators there are."
}

job "zkbench" {
  type = "batch"

  group "worker" {
    count = var.workers

    # Two generators on one machine would measure each other.
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    # Whoever fails is missing for the others, so that all of them end; a worker
    # that is started again alone would wait for nobody.
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts = 0
    }

    task "zkbench" {
      driver = "exec"

      config {
        command = "zkbench"
        args = [
          "run",
          "-servers", var.servers,
          "-join", "/zkbench/nomad",
          "-workers", "${var.workers}",
          "-patience", "5m",
          "-recipe", "lock",
          "-workload", "drain,cycle",
          "-strategy", "predecessor",
          "-contenders", "10,100",
          "-count", "10",
          "-out", "$${NOMAD_ALLOC_DIR}/results.txt",
          "-record", "$${NOMAD_ALLOC_DIR}/records.jsonl",
        ]
      }

      resources {
        cpu    = 2000
        memory = 1024
      }
    }
  }
}
