"""What aotcli promises about time and size, measured: `make bench` writes RESULTS.md."""
