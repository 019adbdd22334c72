"""Random numbers that a test defines."""

from uuid import UUID


class Dice:
    """Results of throws that a test fixes beforehand."""

    def __init__(self, share: float = 0.0, token: str = "0123456789") -> None:
        self.share = share
        self._token = token

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self.share

    def token(self) -> str:
        return self._token

    def uuid(self) -> str:
        return str(UUID(int=int(self._token, 16), version=4))
