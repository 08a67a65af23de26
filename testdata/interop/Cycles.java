import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;

/**
 * Measures Curator's lock: java Cycles SERVERS TIMEOUT_MS CONTENDERS PATH. It says and
 * does what cycles.py does.
 */
public class Cycles {
    static final AtomicInteger holders = new AtomicInteger();
    static final AtomicLong done = new AtomicLong();
    static volatile boolean stop;

    static synchronized void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static void contend(InterProcessMutex mutex, CountDownLatch first) {
        try {
            do {
                mutex.acquire();
                if (holders.incrementAndGet() != 1) {
                    say("violation two contenders hold Curator's lock");
                }
                holders.decrementAndGet();
                mutex.release();
                done.incrementAndGet();
                first.countDown();
            } while (!stop);
        } catch (Throwable e) {
            say("violation Curator failed: " + e);
        }
    }

    public static void main(String[] args) throws Exception {
        String[] servers = args[0].split(",");
        int timeout = Integer.parseInt(args[1]), contenders = Integer.parseInt(args[2]);
        List<InterProcessMutex> mutexes = new ArrayList<>();
        for (int i = 0; i < contenders; i++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(servers[i % servers.length], timeout, 30000, new RetryForever(100));
            client.start();
            client.blockUntilConnected();
            mutexes.add(new InterProcessMutex(client, args[3]));
        }
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String window; (window = in.readLine()) != null;) {
            stop = false;
            done.set(0);
            CountDownLatch first = new CountDownLatch(contenders);
            List<Thread> threads = new ArrayList<>();
            for (InterProcessMutex mutex : mutexes) {
                threads.add(new Thread(() -> contend(mutex, first)));
            }
            for (Thread thread : threads) {
                thread.start();
            }
            first.await();
            long begun = System.nanoTime(), before = done.get();
            Thread.sleep(Long.parseLong(window));
            long cycles = done.get() - before, took = System.nanoTime() - begun;
            stop = true;
            for (Thread thread : threads) {
                thread.join();
            }
            say("cycles " + cycles + " " + took + " " + done.get());
        }
        Runtime.getRuntime().halt(0); // the sessions end with the process
    }
}
