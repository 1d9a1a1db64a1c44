"""Several runs: the table of all, their small multiples, and the tables and figures of a grid."""
