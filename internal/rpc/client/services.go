package client

import (
	"google.golang.org/grpc"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// services are the clients of a plugin's services.
type services struct {
	sessions       pb.SessionServiceClient
	plugins        pb.PluginServiceClient
	grants         pb.GrantServiceClient
	contenders     pb.ContenderServiceClient
	locks          pb.LockServiceClient
	readWriteLocks pb.ReadWriteLockServiceClient
	semaphores     pb.SemaphoreServiceClient
	elections      pb.ElectionServiceClient
	queues         pb.QueueServiceClient
	transactions   pb.TransactionServiceClient
	groups         pb.GroupServiceClient
	names          pb.NamesServiceClient
	barriers       pb.BarrierServiceClient
	doubleBarriers pb.DoubleBarrierServiceClient
	configurations pb.ConfigurationServiceClient
	counters       pb.CounterServiceClient
	latches        pb.LatchServiceClient
}

func servicesOf(conn grpc.ClientConnInterface) services {
	return services{
		sessions:       pb.NewSessionServiceClient(conn),
		plugins:        pb.NewPluginServiceClient(conn),
		grants:         pb.NewGrantServiceClient(conn),
		contenders:     pb.NewContenderServiceClient(conn),
		locks:          pb.NewLockServiceClient(conn),
		readWriteLocks: pb.NewReadWriteLockServiceClient(conn),
		semaphores:     pb.NewSemaphoreServiceClient(conn),
		elections:      pb.NewElectionServiceClient(conn),
		queues:         pb.NewQueueServiceClient(conn),
		transactions:   pb.NewTransactionServiceClient(conn),
		groups:         pb.NewGroupServiceClient(conn),
		names:          pb.NewNamesServiceClient(conn),
		barriers:       pb.NewBarrierServiceClient(conn),
		doubleBarriers: pb.NewDoubleBarrierServiceClient(conn),
		configurations: pb.NewConfigurationServiceClient(conn),
		counters:       pb.NewCounterServiceClient(conn),
		latches:        pb.NewLatchServiceClient(conn),
	}
}
