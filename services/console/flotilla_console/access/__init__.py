"""The users of the console, and their rights.

`signin.py` identifies a request by the configured ways: headers of a proxy (`proxy.py`, `certificates.py`), a session
begun with an OpenID Connect provider (`oidc.py`) or a pasted token (`reviews.py`), or one fixed identity. `sessions.py`
keeps sessions in cookies that `sealing.py` encrypts. `guards.py` refuses requests of other sites. `rights.py` asks the
apiserver for an identity's rights, and `acting.py` sends requests as that identity.

No token, cookie or secret is ever logged, and no failure grants anything.
"""
