"""The command line: each command parses, asks the API once, renders, and writes."""
