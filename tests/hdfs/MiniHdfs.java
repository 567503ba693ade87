import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** An HDFS of one node in the folder that is named, with a home for `alice`; it ends with its input. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        try (MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(new Configuration(), folder).numDataNodes(1).build()) {
            cluster.waitActive();
            FileSystem files = cluster.getFileSystem();
            Path home = new Path("/user/alice");
            files.mkdirs(home);
            files.setOwner(home, "alice", "users");
            System.out.println(cluster.getNameNodePort());
            System.in.read();
        }
    }
}
