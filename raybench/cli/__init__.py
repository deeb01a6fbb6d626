"""The command line: commands, options made from the benchmarks, the flags of published tools."""
