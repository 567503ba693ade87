import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/**
 * An HDFS of one name node and one data node in a folder, on one address of this machine, with a home for `alice`.
 * It tells its port, and ends with its input.
 */
public class SmallHdfs {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        String here = arguments[1] + ":0";
        Configuration conf = new Configuration();
        conf.set("fs.defaultFS", "hdfs://" + here);
        conf.set("dfs.namenode.name.dir", new File(folder, "names").toURI().toString());
        conf.set("dfs.namenode.http-address", here);
        conf.set("dfs.datanode.data.dir", new File(folder, "blocks").toURI().toString());
        conf.set("dfs.datanode.address", here);
        conf.set("dfs.datanode.http.address", here);
        conf.set("dfs.datanode.ipc.address", here);
        conf.setInt("dfs.replication", 1);
        // Without a name for the address, as on most machines of a test.
        conf.setBoolean("dfs.namenode.datanode.registration.ip-hostname-check", false);
        // Formatting registers what the name node itself then registers again.
        DefaultMetricsSystem.setMiniClusterMode(true);
        NameNode.format(conf);
        NameNode names = NameNode.createNameNode(new String[0], conf);
        int port = names.getNameNodeAddress().getPort();
        conf.set("fs.defaultFS", "hdfs://" + arguments[1] + ":" + port);
        DataNode blocks = DataNode.createDataNode(new String[0], conf);
        while (!blocks.isDatanodeFullyStarted()) {
            Thread.sleep(20);
        }
        FileSystem files = FileSystem.get(conf);
        Path home = new Path("/user/alice");
        files.mkdirs(home);
        files.setOwner(home, "alice", "users");
        System.out.println(port);
        System.in.read();
        System.exit(0);
    }
}
