"""The documentation's pages, and the program that writes those of the reference from the code.

Here belong pages for people and `generate`, which `make docs` runs. Code that the product needs does not.
"""
