"""The command line: parses, calls the public functions, prints."""
