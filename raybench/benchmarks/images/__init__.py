"""Images searched among images: DISC2021 and Copydays."""
