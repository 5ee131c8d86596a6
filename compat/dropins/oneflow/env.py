"""Processes of a job: this one alone."""


def get_rank() -> int:
    """0: the number of this process."""
    return 0


def get_local_rank() -> int:
    """0: the number of this process on its machine."""
    return 0


def get_world_size() -> int:
    """1: the number of processes."""
    return 1


def get_node_size() -> int:
    """1: the number of machines."""
    return 1


def is_multi_client() -> bool:
    """Whether each process runs the program: True, as in OneFlow."""
    return True


def rdma_is_initialized() -> bool:
    """False: there is no network."""
    return False
