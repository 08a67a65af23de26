import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.data.Stat;

/**
 * Measures Curator's recipes: java Cycles SERVERS TIMEOUT_MS SESSIONS PATH. It says and
 * does what cycles.py does.
 */
public class Cycles {
    static final int PERMITS = 3, MANY = 64, WRITE_EACH = 10;
    static final List<CuratorFramework> clients = new ArrayList<>();
    static String[] servers;
    static int timeout, sessions;
    static String path;

    /** How many are counted, in how many nanoseconds, and how many there were in all. */
    record Result(long count, long took, long all) {}

    interface Task {
        void run() throws Exception;
    }

    /** What a contender acquires and releases. */
    interface Lock {
        /** Returns the shares that it now holds. */
        int acquire() throws Exception;

        void release() throws Exception;
    }

    record Mutex(InterProcessMutex mutex) implements Lock {
        public int acquire() throws Exception {
            mutex.acquire();
            return 1;
        }

        public void release() throws Exception {
            mutex.release();
        }
    }

    static class Permit implements Lock {
        final InterProcessSemaphoreV2 semaphore;
        Lease lease;

        Permit(CuratorFramework client) {
            semaphore = new InterProcessSemaphoreV2(client, path + "/semaphore", PERMITS);
        }

        public int acquire() throws Exception {
            lease = semaphore.acquire();
            return 1;
        }

        public void release() {
            semaphore.returnLease(lease);
        }
    }

    static class Shared implements Lock {
        final InterProcessReadWriteLock lock;
        int turn;

        Shared(CuratorFramework client, int turn) {
            lock = new InterProcessReadWriteLock(client, path + "/shared");
            this.turn = turn;
        }

        boolean writes() {
            return turn % WRITE_EACH == 0;
        }

        InterProcessMutex side() {
            return writes() ? lock.writeLock() : lock.readLock();
        }

        public int acquire() throws Exception {
            turn++;
            side().acquire();
            return writes() ? sessions : 1;
        }

        public void release() throws Exception {
            side().release();
        }
    }

    static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static CuratorFramework connect(int i) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers[i % servers.length], timeout, 30000, new RetryForever(100));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** Starts a thread for each task. */
    static List<Thread> start(List<Task> tasks) {
        List<Thread> threads = new ArrayList<>();
        for (Task task : tasks) {
            Thread thread = new Thread(() -> {
                try {
                    task.run();
                } catch (Throwable e) {
                    say("violation Curator failed: " + e);
                }
            });
            thread.start();
            threads.add(thread);
        }
        return threads;
    }

    static void join(List<Thread> threads) throws Exception {
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static volatile boolean stop;

    static Result cycle(List<Lock> locks, long window, int most) throws Exception {
        stop = false;
        AtomicInteger held = new AtomicInteger();
        AtomicLong done = new AtomicLong();
        CountDownLatch first = new CountDownLatch(locks.size());
        List<Task> tasks = new ArrayList<>();
        for (Lock lock : locks) {
            tasks.add(() -> {
                boolean had = false;
                do {
                    int share = lock.acquire();
                    if (held.addAndGet(share) > most) {
                        say("violation too many contenders hold at Curator's path");
                    }
                    if (!had) {
                        Thread.sleep(1); // so that a holder too many would be counted
                    }
                    held.addAndGet(-share);
                    lock.release();
                    done.incrementAndGet();
                    if (!had) {
                        first.countDown();
                        had = true;
                    }
                } while (!stop);
            });
        }
        List<Thread> threads = start(tasks);
        first.await();
        long begun = System.nanoTime(), before = done.get();
        Thread.sleep(window);
        long count = done.get() - before, took = System.nanoTime() - begun;
        stop = true;
        join(threads);
        return new Result(count, took, done.get());
    }

    static Result acquire(InterProcessMutex mutex, long window) throws Exception {
        long count = 0, took = 0, begun = System.nanoTime();
        while (count == 0 || System.nanoTime() - begun < window * 1_000_000) {
            long asked = System.nanoTime();
            mutex.acquire();
            took += System.nanoTime() - asked;
            mutex.release();
            count++;
        }
        return new Result(count, took, count);
    }

    static Result barrier(long window) throws Exception {
        stop = false;
        AtomicInteger came = new AtomicInteger();
        AtomicLong rounds = new AtomicLong();
        long begun = System.nanoTime();
        CyclicBarrier gate = new CyclicBarrier(sessions, () -> { // when all have left
            came.set(0);
            stop = rounds.get() > 0 && System.nanoTime() - begun >= window * 1_000_000;
        });
        List<Task> tasks = new ArrayList<>();
        for (CuratorFramework client : clients) {
            tasks.add(() -> {
                for (gate.await(); !stop; gate.await()) {
                    DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path + "/barrier", sessions);
                    came.incrementAndGet();
                    barrier.enter();
                    if (came.get() < sessions) {
                        say("violation a member has passed Curator's barrier with " + came);
                    }
                    barrier.leave();
                    if (client == clients.get(0)) {
                        rounds.incrementAndGet();
                    }
                }
            });
        }
        join(start(tasks));
        return new Result(rounds.get() * sessions, System.nanoTime() - begun, rounds.get() * sessions);
    }

    static Result putAndTake(boolean puts, int n) throws Exception {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(clients.get(0), path + "/queue");
        long begun = System.nanoTime();
        for (int i = 0; i < n; i++) {
            queue.offer(String.format("element-%08d", i).getBytes());
        }
        long put = System.nanoTime() - begun;
        begun = System.nanoTime();
        for (int i = 0; i < n; i++) {
            if (!new String(queue.take()).equals(String.format("element-%08d", i))) {
                say("violation Curator's queue is not in order");
            }
        }
        return new Result(n, puts ? put : System.nanoTime() - begun, n);
    }

    static Result failover() throws Exception {
        String election = path + "/election";
        AtomicInteger leaders = new AtomicInteger();
        AtomicLong last = new AtomicLong();
        CountDownLatch first = new CountDownLatch(1);
        List<Task> tasks = new ArrayList<>();
        List<CuratorFramework> candidates = new ArrayList<>();
        for (int i = 0; i < sessions; i++) {
            CuratorFramework client = connect(i);
            candidates.add(client);
            LeaderLatch latch = new LeaderLatch(client, election, Integer.toString(i));
            latch.start();
            tasks.add(() -> {
                latch.await();
                last.set(System.nanoTime());
                if (leaders.incrementAndGet() != 1) {
                    say("violation two lead Curator's election");
                }
                first.await();
                leaders.decrementAndGet();
                // CuratorFramework.close waits for its threads before it closes the session.
                client.getZookeeperClient().getZooKeeper().close();
            });
        }
        List<Thread> threads = start(tasks);
        for (Stat stat = null; stat == null || stat.getNumChildren() < sessions; Thread.sleep(1)) {
            stat = clients.get(0).checkExists().forPath(election);
        }
        long begun = System.nanoTime();
        first.countDown();
        join(threads);
        for (CuratorFramework client : candidates) {
            client.close();
        }
        return new Result(sessions - 1, last.get() - begun, sessions);
    }

    static Result hold(int n) throws Exception {
        AtomicInteger next = new AtomicInteger();
        List<Task> tasks = new ArrayList<>();
        long begun = System.nanoTime();
        for (int t = 0; t < MANY; t++) {
            tasks.add(() -> {
                for (int i; (i = next.getAndIncrement()) < n;) {
                    new InterProcessMutex(clients.get(i % sessions), path + "/hold-" + i).acquire();
                }
            });
        }
        join(start(tasks));
        return new Result(n, System.nanoTime() - begun, n);
    }

    static Result run(String workload, int number) throws Exception {
        List<Lock> locks = new ArrayList<>();
        switch (workload) {
            case "cycle":
                for (CuratorFramework client : clients) {
                    locks.add(new Mutex(new InterProcessMutex(client, path)));
                }
                return cycle(locks, number, 1);
            case "semaphore":
                for (CuratorFramework client : clients) {
                    locks.add(new Permit(client));
                }
                return cycle(locks, number, PERMITS);
            case "shared":
                for (CuratorFramework client : clients) {
                    locks.add(new Shared(client, locks.size()));
                }
                return cycle(locks, number, sessions);
            case "many":
                for (int i = 0; i < MANY; i++) {
                    locks.add(new Mutex(new InterProcessMutex(clients.get(0), path + "/many-" + i)));
                }
                return cycle(locks, number, MANY);
            case "acquire":
                return acquire(new InterProcessMutex(clients.get(0), path + "/acquire"), number);
            case "barrier":
                return barrier(number);
            case "put":
            case "take":
                return putAndTake(workload.equals("put"), number);
            case "failover":
                return failover();
            case "hold":
                return hold(number);
            default:
                throw new IllegalArgumentException(workload);
        }
    }

    public static void main(String[] args) throws Exception {
        servers = args[0].split(",");
        timeout = Integer.parseInt(args[1]);
        sessions = Integer.parseInt(args[2]);
        path = args[3];
        for (int i = 0; i < sessions; i++) {
            clients.add(connect(i));
        }
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            Result r = run(words[0], Integer.parseInt(words[1]));
            say("cycles " + r.count + " " + r.took + " " + r.all);
        }
        Runtime.getRuntime().halt(0); // the sessions end with the process
    }
}
