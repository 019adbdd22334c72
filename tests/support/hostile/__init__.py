"""Objects as users, broken tools and attackers write them, made from the schemas.

A kind that is added later is covered without a line.
"""
