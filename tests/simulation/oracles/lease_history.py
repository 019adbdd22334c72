"""For how long anybody has held a lease, by the apiserver's record of renewals."""

from tests.simulation.history import Version


class LeaseHistory:
    """Of all leases whose names begin so; there is one if work is not shared."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._held = 0.0  # seconds, up to the last renewal
        self._renewed = 0.0
        self._duration = 0.0  # for how long that one holds

    def take(self, version: Version) -> None:
        """A lease was written; one of these begins, goes on, or was given back."""
        if version.after is None or not self._is_one(version.name):
            return
        self._held, self._renewed = self.held(version.at), version.at
        spec = version.after["spec"]
        self._duration = float(spec["leaseDurationSeconds"]) if spec.get("holderIdentity") else 0.0

    def held(self, at: float) -> float:
        """Seconds up to this moment in which somebody held it."""
        return self._held + min(at - self._renewed, self._duration)

    def _is_one(self, name: str) -> bool:
        return name.startswith(self._prefix) and name.removeprefix(self._prefix).isdigit()
