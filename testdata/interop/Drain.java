import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.RetryNTimes;

/**
 * Measures Curator's SimpleDistributedQueue: java Drain SERVERS TIMEOUT_MS SESSIONS PATH. It says
 * and does what drain.py does.
 */
public class Drain {
    public static void main(String[] args) throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        List<SimpleDistributedQueue> queues = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 30000, new RetryNTimes(1, 100));
            client.start();
            client.blockUntilConnected();
            clients.add(client);
            queues.add(new SimpleDistributedQueue(client, args[3]));
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            long count = 0, began = System.nanoTime();
            AtomicLong first = new AtomicLong(began);
            switch (words[0]) {
            case "put":
                for (count = 0; count < Long.parseLong(words[1]); count++) {
                    queues.get(0).offer(String.format("element-%08d", count).getBytes());
                }
                break;
            case "len":
                count = clients.get(0).getChildren().forPath(args[3]).size();
                break;
            default:
                count = take(queues, Long.parseLong(words[1]), began + Long.parseLong(words[2]) * 1_000_000_000L, first);
            }
            System.out.println(words[0] + " " + count + " " + (System.nanoTime() - began) + " " + (first.get() - began));
        }
        Runtime.getRuntime().halt(0); // the sessions end with the process
    }

    static long take(List<SimpleDistributedQueue> queues, long n, long end, AtomicLong first) throws Exception {
        long began = first.get();
        AtomicLong taken = new AtomicLong();
        AtomicReference<Exception> failed = new AtomicReference<>();
        List<Thread> consumers = new ArrayList<>();
        for (SimpleDistributedQueue queue : queues) {
            consumers.add(new Thread(() -> {
                try {
                    while (taken.get() < n && System.nanoTime() < end) {
                        if (queue.poll() != null) {
                            taken.incrementAndGet();
                            first.compareAndSet(began, System.nanoTime());
                        }
                    }
                } catch (Exception e) {
                    failed.set(e);
                }
            }));
        }
        for (Thread consumer : consumers) {
            consumer.start();
        }
        for (Thread consumer : consumers) {
            consumer.join();
        }
        if (failed.get() != null) {
            System.err.println("Curator failed: " + failed.get());
            Runtime.getRuntime().halt(1);
        }
        return taken.get();
    }
}
