"""Files of a job: the server in its cluster that gives them out, and the side that fetches them."""
