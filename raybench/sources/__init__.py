"""What is read: ordered keys with a digest, readable by range. A source never decides how it is cut."""
