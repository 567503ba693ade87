"""Files elsewhere: S3, HDFS, HTTP. Found by URL, copied to this host through a cache, and put there."""
