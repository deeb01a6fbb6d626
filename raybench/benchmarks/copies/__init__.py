"""Copy detection: DISC2021 and Copydays."""
