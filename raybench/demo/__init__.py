"""Small data sets in the published layouts, made from real photos, and a tour of every benchmark over them."""
