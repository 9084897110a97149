"""Results as text, Markdown, JSON and code: pure functions from frozen results to strings. Nothing here writes."""
