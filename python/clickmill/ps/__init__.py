"""Where rows live: one protocol for tables in this process and, later, on parameter servers."""
