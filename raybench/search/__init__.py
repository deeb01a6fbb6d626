"""Exact search: matrix products and FAISS propose, one row-wise float64 routine decides."""
