"""The command line: it parses arguments, calls public functions and prints."""
