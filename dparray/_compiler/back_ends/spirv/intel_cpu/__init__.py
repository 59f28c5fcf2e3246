"""Rules against defects of Intel's driver for CPUs, applied to modules for its devices."""
