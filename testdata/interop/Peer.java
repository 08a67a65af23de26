import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryNTimes;

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

    static void exclusive() throws Exception {
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
        Path counter = witness.resolve("counter");
        String text = Files.readString(counter);
        long n = text.isEmpty() ? 0 : Long.parseLong(text);
        Thread.sleep(2);
        Files.writeString(counter, Long.toString(n + 1));
        say("turn " + (n + 1));
        Files.delete(file);
    }

    static void shared() throws Exception {
        Path file = witness.resolve("reader-" + me);
        Files.createFile(file);
        for (int i = 0; i < 2; i++) {
            if (Files.exists(witness.resolve("writer"))) {
                say("violation Curator reads beside a writer");
            }
            Thread.sleep(1);
        }
        say("read");
        Files.delete(file);
    }

    static void permit() throws Exception {
        Path file = witness.resolve("slot-" + me);
        Files.createFile(file);
        for (int i = 0; i < 2; i++) {
            if (count("slot-*") > 2) {
                say("violation Curator has a permit beside two");
            }
            Thread.sleep(1);
        }
        say("held");
        Files.delete(file);
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

    static int puts;

    public static void main(String[] args) throws Exception {
        String recipe = args[2], path = args[3];
        witness = Path.of(args[4]);
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 30000, new RetryForever(100));
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
        say("ready");
        while (true) {
            turn(client, recipe, path);
        }
    }

    static void turn(CuratorFramework client, String recipe, String path) throws Exception {
        switch (recipe) {
            case "lock":
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                mutex.acquire();
                exclusive();
                mutex.release();
                break;
            case "rw":
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
                boolean reading = ThreadLocalRandom.current().nextBoolean();
                InterProcessMutex side = reading ? lock.readLock() : lock.writeLock();
                side.acquire();
                if (reading) {
                    shared();
                } else {
                    exclusive();
                }
                side.release();
                break;
            case "election":
                LeaderLatch latch = new LeaderLatch(client, path, me);
                latch.start();
                latch.await();
                exclusive();
                latch.getParticipants(); // which reads ours too
                latch.close();
                break;
            case "selector":
                CountDownLatch led = new CountDownLatch(1);
                LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
                    public void takeLeadership(CuratorFramework c) throws Exception {
                        exclusive();
                        led.countDown();
                    }
                });
                selector.setId(me);
                selector.start();
                led.await();
                selector.close();
                break;
            case "semaphore":
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 2);
                Lease lease = semaphore.acquire();
                permit();
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
            case "barrier":
                Files.createFile(witness.resolve("member-" + me));
                say("enters");
                new DistributedDoubleBarrier(client, path, 2).enter();
                say("passed " + count("member-*"));
                new CountDownLatch(1).await();
                break;
            default:
                throw new IllegalArgumentException(recipe);
        }
    }
}
