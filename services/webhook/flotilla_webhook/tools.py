"""What the admission of kinds may look at, answered by the apiserver itself."""

from flotilla_common.clock import Clock
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_webhook.protection import Protection
from flotilla_webhook.templates import DryRunValidator


class LiveTools:
    """The `Tools` of this process."""

    def __init__(self, api: Api, clock: Clock, gates: Gates, protection: Protection) -> None:
        self.gates = gates
        self.now = clock.now
        self.read = api.get
        self.template_verdict = DryRunValidator(api).verdict
        self.deletion_protection = protection.workload
