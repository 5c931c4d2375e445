"""The data that crosses between processes: frames, messages and recorded calls, read field by field."""
