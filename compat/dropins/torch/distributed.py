"""torch.distributed: there is one process; what needs a group of them raises."""

import enum
import os as _os


def is_available() -> bool:
    """False: tapegrad has no distributed processes."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = (
    is_available
)


def is_torchelastic_launched() -> bool:
    """Whether torchrun started the process."""
    return "TORCHELASTIC_RUN_ID" in _os.environ


def _no_group(*args: object, **kwargs: object) -> object:
    """Raises: there is no group of processes."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


get_backend = get_process_group_ranks = get_rank = get_world_size = get_group_rank = get_global_rank = _no_group
all_gather = all_gather_into_tensor = all_gather_object = all_reduce = all_to_all = all_to_all_single = barrier = _no_group
broadcast = broadcast_object_list = gather = gather_object = irecv = isend = monitored_barrier = new_group = _no_group
recv = reduce = reduce_scatter = reduce_scatter_tensor = scatter = scatter_object_list = send = _no_group


def destroy_process_group(group: object = None) -> None:
    """Raises: there is no group of processes."""
    raise AssertionError("Process group cannot be None")


class ReduceOp(enum.Enum):
    """How values of several processes would be put together."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


reduce_op = ReduceOp


class Backend(str):
    """The name of a library for messages."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


class group:
    """The group of all processes: none."""

    WORLD = None


class GroupMember:
    """Who belongs to a group."""

    WORLD, NON_GROUP_MEMBER = None, -100
