import org.codelibs.opensearch.runner.OpenSearchRunner;

/**
 * Runs one OpenSearch node on the loopback address until the process is told to
 * end. The same file serves every version; Java compiles it as it starts.
 */
public class OpenSearchNode {
    public static void main(String[] args) {
        if (args.length != 3) {
            System.err.println("usage: OpenSearchNode folder http-port transport-port");
            System.exit(2);
        }
        OpenSearchRunner runner = new OpenSearchRunner();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(runner)));
        runner.onBuild((number, settings) -> settings
                .put("network.host", "127.0.0.1")
                .put("http.port", args[1])
                .put("transport.port", args[2])
                .put("discovery.type", "single-node")
                // A developer's disk is often nearly full; that is no reason to refuse writes.
                .put("cluster.routing.allocation.disk.threshold_enabled", false));
        try {
            runner.build(OpenSearchRunner.newConfigs().basePath(args[0]).clusterName("sluice").numOfNode(1));
            runner.ensureYellow(); // what was in the folder has been recovered
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1); // threads of a node that half started would keep the process
        }
        System.out.println("started on port " + args[1]);
        try {
            Thread.currentThread().join();
        } catch (InterruptedException e) {
            System.exit(1);
        }
    }

    private static void close(OpenSearchRunner runner) {
        try {
            runner.close();
        } catch (Exception e) {
            e.printStackTrace();
        }
    }
}
