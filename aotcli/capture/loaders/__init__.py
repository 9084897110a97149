"""One file per way to name a model."""
