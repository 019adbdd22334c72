"""The HTTPS server: routes and reviews, TLS, its certificate, and the registration at the apiserver.

`serving.py` wires it: nothing here depends on what is admitted.
"""
