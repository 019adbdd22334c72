"""How long a lease has been held by any replica, by the apiserver's record of renewals."""

from tests.simulation.history import Version


class LeaseHistory:
    """The history of all leases with this prefix; there is one if work is not sharded."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._held = 0.0  # seconds, up to the last renewal
        self._renewed = 0.0
        self._duration = 0.0  # for how long that one holds

    def take(self, version: Version) -> None:
        """Record a write of a lease: one of these is acquired, renewed or released."""
        if version.after is None or not self._is_one(version.name):
            return
        self._held, self._renewed = self.held(version.at), version.at
        spec = version.after["spec"]
        self._duration = float(spec["leaseDurationSeconds"]) if spec.get("holderIdentity") else 0.0

    def held(self, at: float) -> float:
        """Return the seconds up to this time in which the lease was held."""
        return self._held + min(at - self._renewed, self._duration)

    def _is_one(self, name: str) -> bool:
        return name.startswith(self._prefix) and name.removeprefix(self._prefix).isdigit()
