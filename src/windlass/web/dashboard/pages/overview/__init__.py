"""The overview: is it healthy?"""
