"""The whole contract in one class."""

from tests.simulation.contract.apiserver.deletes import DeleteContract
from tests.simulation.contract.apiserver.history import HistoryContract
from tests.simulation.contract.apiserver.ownership import OwnershipContract
from tests.simulation.contract.apiserver.patches import CustomPatchContract, PodPatchContract
from tests.simulation.contract.apiserver.quota import QuotaContract
from tests.simulation.contract.apiserver.reads import ListContract, WatchContract
from tests.simulation.contract.apiserver.streams import StreamContract
from tests.simulation.contract.apiserver.writes import CreateContract, UpdateContract


class ApiServerContract(
    CreateContract,
    UpdateContract,
    PodPatchContract,
    CustomPatchContract,
    DeleteContract,
    ListContract,
    WatchContract,
    StreamContract,
    HistoryContract,
    OwnershipContract,
    QuotaContract,
):
    """The behaviour of an apiserver that services and the simulator rely on."""
