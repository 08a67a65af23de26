import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * Contends with Curator: java Peer.java SERVERS TIMEOUT_MS RECIPE PATH WITNESS. It says
 * and does what peer.py does.
 */
public class Peer {
    static Path witness;
    static final String me = Long.toString(ProcessHandle.current().pid());

    static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static int turns() throws Exception {
        String text = Files.readString(witness.resolve("counter"));
        return text.isEmpty() ? 0 : Integer.parseInt(text);
    }

    static void exclusive(long czxid) throws Exception {
        Path file = witness.resolve("writer");
        try {
            Files.write(file, me.getBytes(), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        } catch (FileAlreadyExistsException e) {
            say("violation Curator holds beside a holder");
            return;
        }
        try (DirectoryStream<Path> readers = Files.newDirectoryStream(witness, "reader-*")) {
            for (Path reader : readers) {
                say("violation Curator writes beside " + reader);
            }
        }
        int n = turns();
        Thread.sleep(2);
        Files.writeString(witness.resolve("counter"), Integer.toString(n + 1));
        say("turn " + (n + 1) + " " + czxid);
        Files.delete(file);
    }

    static void shared(long czxid) throws Exception {
        Path file = witness.resolve("reader-" + me);
        Files.createFile(file);
        for (int i = 0; i < 2; i++) {
            if (Files.exists(witness.resolve("writer"))) {
                say("violation Curator reads beside a writer");
            }
            Thread.sleep(1);
        }
        say("read " + turns() + " " + czxid);
        Files.delete(file);
    }

    static void permit(Stat lease) throws Exception {
        Path file = witness.resolve("slot-" + me);
        Files.createFile(file);
        for (int i = 0; i < 2; i++) {
            if (count("slot-*") > 2) {
                say("violation Curator has a permit beside two");
            }
            Thread.sleep(1);
        }
        say("held " + lease.getCzxid() + " " + lease.getEphemeralOwner());
        Files.delete(file);
    }

    static CuratorFramework client;

    static long czxid(String znode) throws Exception {
        return client.checkExists().forPath(znode).getCzxid();
    }

    /** The znode with which this thread has the lock. */
    static long czxid(InterProcessMutex mutex) throws Exception {
        return czxid(call(InterProcessMutex.class, "getLockPath", mutex));
    }

    /** Calls a method that is not public, or that Curator 2.7.1 does not have. */
    static String call(Class<?> type, String method, Object of) throws Exception {
        Method m = type.getDeclaredMethod(method);
        m.setAccessible(true);
        return (String) m.invoke(of);
    }

    static void listed(Collection<Participant> participants) {
        if (participants.stream().anyMatch(p -> p.getId().startsWith("ours "))) {
            say("listed");
        }
    }

    static int count(String pattern) throws Exception {
        int n = 0;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(witness, pattern)) {
            for (Path file : files) {
                n++;
            }
        }
        return n;
    }

    static int puts, rounds;

    static Path mark(String name) throws Exception {
        return Files.write(witness.resolve(name + "-" + me), new byte[0]);
    }

    /** As take_part of peer.py. Nobody enters again before all have left: those that leave would wait for it. */
    static void takePart(String path) throws Exception {
        Path rests = mark("rests");
        Thread.sleep(5);
        if (!Files.deleteIfExists(rests)) {
            new CountDownLatch(1).await();
        }
        while (count("member-" + rounds + "-*") > 0) {
            Thread.sleep(1);
        }
        rounds++;
        Path member = mark("member-" + rounds);
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, 4);
        barrier.enter();
        say("passed " + count("member-" + rounds + "-*"));
        Path inside = mark("inside-" + rounds);
        Path came = mark("came-" + rounds);
        Path last = mark("last");
        Files.writeString(last, Integer.toString(rounds));
        Files.move(last, witness.resolve("round"), StandardCopyOption.ATOMIC_MOVE);
        while (count("came-" + rounds + "-*") < 4) {
            Thread.sleep(1);
        }
        Files.delete(inside);
        barrier.leave();
        say("left " + count("inside-" + rounds + "-*"));
        Files.delete(came);
        Files.delete(member);
    }

    public static void main(String[] args) throws Exception {
        String recipe = args[2], path = args[3];
        witness = Path.of(args[4]);
        client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 30000, new RetryNTimes(Integer.MAX_VALUE, 100));
        client.start();
        client.blockUntilConnected();
        Thread stop = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                }
                client.close();
            } catch (Exception e) {
                // it ends in any case
            }
            Runtime.getRuntime().halt(0);
        });
        stop.setDaemon(true);
        stop.start();
        if (Files.exists(witness.resolve("round"))) {
            rounds = Integer.parseInt(Files.readString(witness.resolve("round")));
        }
        say("ready");
        try {
            while (true) {
                turn(recipe, path);
            }
        } catch (KeeperException.ConnectionLossException | KeeperException.SessionExpiredException e) {
            say("lost"); // as on a machine that is busy for too long
        } catch (Exception e) {
            if (("" + e.getMessage()).startsWith("Lost connection")) { // of InterProcessMutex
                say("lost");
                Runtime.getRuntime().halt(1);
            }
            e.printStackTrace();
            say("violation Curator failed: " + e);
        }
        Runtime.getRuntime().halt(1);
    }

    static void turn(String recipe, String path) throws Exception {
        switch (recipe) {
            case "lock":
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                mutex.acquire();
                exclusive(czxid(mutex));
                mutex.release();
                break;
            case "rw":
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                boolean reading = ThreadLocalRandom.current().nextBoolean();
                InterProcessMutex side = reading ? lock.readLock() : lock.writeLock();
                side.acquire();
                if (reading) {
                    shared(czxid(side));
                } else {
                    exclusive(czxid(side));
                }
                if (ThreadLocalRandom.current().nextInt(3) == 0) { // again, and as a writer to read
                    lock.readLock().acquire();
                    side.acquire();
                    if (reading) {
                        shared(czxid(side));
                    } else {
                        exclusive(czxid(side));
                    }
                    side.release();
                    lock.readLock().release();
                }
                side.release();
                break;
            case "election":
                LeaderLatch latch = new LeaderLatch(client, path, me);
                latch.start();
                latch.await();
                exclusive(czxid(call(LeaderLatch.class, "getOurPath", latch)));
                listed(latch.getParticipants());
                latch.close();
                break;
            case "selector":
                CountDownLatch led = new CountDownLatch(1);
                Field mutexOfSelector = LeaderSelector.class.getDeclaredField("mutex");
                mutexOfSelector.setAccessible(true);
                AtomicReference<InterProcessMutex> turn = new AtomicReference<>();
                LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                    public void takeLeadership(CuratorFramework c) throws Exception {
                        exclusive(czxid(turn.get()));
                        led.countDown();
                    }
                });
                selector.setId(me);
                turn.set((InterProcessMutex) mutexOfSelector.get(selector));
                selector.start();
                led.await();
                listed(selector.getParticipants());
                selector.close();
                break;
            case "semaphore":
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 2);
                Lease lease = semaphore.acquire();
                permit(client.checkExists().forPath(path + "/leases/" + call(Lease.class, "getNodeName", lease)));
                semaphore.returnLease(lease);
                break;
            case "counter":
                AtomicValue<Long> value = new DistributedAtomicLong(client, path, new RetryNTimes(1000, 2)).increment();
                if (value.succeeded()) {
                    say("turn " + value.postValue());
                }
                Thread.sleep(5);
                break;
            case "queue":
                SimpleDistributedQueue queue = new SimpleDistributedQueue(client, path);
                String id = me + "-" + ++puts;
                queue.offer(id.getBytes());
                say("put " + id);
                say("took " + new String(queue.take()));
                break;
            case "rounds":
                takePart(path);
                break;
            default:
                throw new IllegalArgumentException(recipe);
        }
    }
}
