"""Speculative decoding you can see: a decoding engine, its proposers and the page around them."""

__version__ = "0.1.0"
