"""Who this process is, by its environment: the names of PaddleCloud and Kubernetes jobs, and our own.

Our names (`CLICKMILL_...`) come first; `PADDLE_...` and the rest are what launchers of such jobs have always
set. All names of one thing must agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from clickmill.config.cluster import Communicator, communicator_key
from clickmill.launch.address import Address
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["pserver", "trainer"]

ROLE = ("CLICKMILL_ROLE", "PADDLE_TRAINING_ROLE", "TRAINING_ROLE")
TRAINERS = ("CLICKMILL_TRAINERS", "PADDLE_TRAINERS_NUM")
PSERVERS = ("CLICKMILL_PSERVERS", "PADDLE_PSERVERS_NUM")
PSERVER_ADDRESSES = ("CLICKMILL_PSERVER_ADDRESSES", "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_PSERVERS")
TRAINER_INDEX = ("CLICKMILL_INDEX", "PADDLE_TRAINER_ID")
PSERVER_INDEX = ("CLICKMILL_INDEX", "PADDLE_PSERVER_ID")
HOST = ("CLICKMILL_HOST", "PADDLE_CURRENT_IP", "POD_IP")
PORT = ("CLICKMILL_PORT", "PADDLE_PORT")
COORDINATOR = ("CLICKMILL_COORDINATOR",)
WORKER_ADDRESSES = ("CLICKMILL_WORKER_ADDRESSES", "PADDLE_TRAINER_ENDPOINTS")
WORKER_HOSTS = ("PADDLE_TRAINERS", "PADDLE_TRAINER_IPS")
WORKER_ADDRESS = ("CLICKMILL_WORKER_ADDRESS", "PADDLE_CURRENT_ENDPOINT", "PADDLE_CURRENT_ENDPOINTS")
JOB = ("CLICKMILL_JOB", "PADDLE_JOB_NAME")
THREADS = ("CLICKMILL_THREADS", "CPU_NUM", "NUM_THREADS")
GPUS = ("CLICKMILL_GPUS", "FLAGS_selected_gpus")
TOKEN = ("CLICKMILL_TOKEN",)
TOKEN_FILE = ("CLICKMILL_TOKEN_FILE",)
SNAPSHOTS = ("CLICKMILL_SNAPSHOTS",)
METRICS_PORT = ("CLICKMILL_METRICS_PORT",)
INSECURE = ("CLICKMILL_INSECURE",)
LOCAL = ("PADDLE_IS_LOCAL",)

_DEFAULT_PSERVER_PORT = 6174
_DEFAULT_WORKER_PORT = 6170
_KINDS: dict[str, Kind] = {"PSERVER": "pserver", "TRAINER": "trainer", "WORKER": "trainer"}


@dataclass(frozen=True, slots=True)
class Role:
    """What one process of a cluster has to know about itself and the others."""

    kind: Kind
    """A worker of a collective job is a trainer, too."""
    index: int | None = None
    """Among its kind, from 0. A trainer of a parameter-server job may have none."""
    num_trainers: int | None = None
    num_pservers: int | None = None
    pservers: tuple[Address, ...] = ()
    """Of all parameter servers, by index; empty where only the coordinator is known."""
    coordinator: Address | None = None
    """Parameter server 0; None for itself where it was not told."""
    address: Address | None = None
    """Where this process listens: a parameter server, or a collective worker."""
    announced: Address | None = None
    """Where others find a parameter server that listens at another address."""
    workers: tuple[Address, ...] = ()
    """Of all collective workers, by rank."""
    job: str = ""
    pod: str = ""
    num_threads: int | None = None
    gpus: str | None = None
    communicator: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Knobs of the communicator by their names in config.yaml."""
    ignored: tuple[str, ...] = ()
    """Variables that look like knobs and mean nothing here."""
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    snapshots: str | None = None
    """Folder for snapshots of a parameter server."""
    metrics_port: int = 0
    metrics_host: str = ""
    """Where a trainer answers there; empty: for this machine alone."""
    is_insecure: bool = False

    @property
    def name(self) -> str:
        """`trainer 0`; a trainer without a number is just a trainer."""
        return self.kind if self.index is None else f"{self.kind} {self.index}"


def read_role(environ: Mapping[str, str], *, is_collective: bool = False) -> Role | None:
    """The role that `environ` gives; None where it names none.

    Raises ConfigError that names every variable that is missing, contradicts another or means nothing.
    """
    variables = Variables(environ)
    if variables.name_of(*ROLE) is None:
        return None
    kind = variables.read(_kind, *ROLE)
    if variables.flag(*LOCAL):
        variables.wrong(
            "PADDLE_IS_LOCAL",
            f"asks for local training, but `{variables.name_of(*ROLE)}` gives a role; set it to 0",
        )
    if kind is None:
        role = None
    elif is_collective:
        role = _worker(variables, kind)
    else:
        role = _server(variables) if kind == "pserver" else _trainer(variables)
    variables.check(hint="`docs/guides/clusters.md` lists the variables of a cluster")
    assert role is not None  # else there was a problem
    return role


def _kind(text: str) -> Kind:
    kind = _KINDS.get(text.upper())
    if kind is None:
        raise ValueError(f"must be PSERVER, TRAINER or WORKER, not `{text}`")
    return kind


def _shared(variables: Variables) -> dict[str, object]:
    known, ignored = _communicator(variables)
    return {
        "job": variables.text(*JOB) or "",
        "pod": variables.text("POD_NAME") or "",
        "num_threads": _threads(variables),
        "gpus": variables.text(*GPUS),
        "communicator": MappingProxyType(known),
        "ignored": ignored,
        "token": variables.text(*TOKEN),
        "token_file": variables.text(*TOKEN_FILE),
        "snapshots": variables.text(*SNAPSHOTS),
        "metrics_port": variables.port(*METRICS_PORT) or 0,
        "is_insecure": variables.flag(*INSECURE) or False,
    }


def _threads(variables: Variables) -> int | None:
    """The first that is set: `NUM_THREADS` has never been the same thing as `CPU_NUM` in all jobs."""
    name = variables.name_of(*THREADS)
    return None if name is None else variables.count(name, least=1)


def _communicator(variables: Variables) -> tuple[dict[str, str], tuple[str, ...]]:
    known: dict[str, str] = {}
    origin: dict[str, str] = {}
    ignored = []
    for name, value in sorted(variables.with_prefix("FLAGS_communicator_", "FLAGS_rpc_").items()):
        key = communicator_key(name)
        if key not in Communicator.model_fields:
            ignored.append(name)
        elif known.setdefault(key, value) != value:
            variables.wrong(
                name, f"says `{value}`, but `{origin[key]}` says `{known[key]}`; unset one of them"
            )
        origin.setdefault(key, name)
    return known, tuple(ignored)


def _pservers(variables: Variables) -> tuple[tuple[Address, ...], int | None, Address | None]:
    """Addresses of the parameter servers, how many there are, and the coordinator."""
    port = variables.port(*PORT)
    addresses = variables.addresses(
        *PSERVER_ADDRESSES, default_port=_DEFAULT_PSERVER_PORT if port is None else port
    )
    number = variables.count(*PSERVERS, least=1)
    if addresses and number is not None and number != len(addresses):
        listed = variables.name_of(*PSERVER_ADDRESSES)
        variables.wrong(
            variables.name_of(*PSERVERS) or "",
            f"says {number}, but `{listed}` names {len(addresses)} addresses",
        )
    told = variables.addresses(*COORDINATOR)
    if len(told) > 1:
        variables.wrong(COORDINATOR[0], f"must be one address, not {len(told)}")
    coordinator = told[0] if told else addresses[0] if addresses else None
    if addresses and coordinator != addresses[0]:
        listed = variables.name_of(*PSERVER_ADDRESSES)
        variables.wrong(
            COORDINATOR[0],
            f"says `{coordinator}`, but the first address of `{listed}` is `{addresses[0]}`; "
            "parameter server 0 is the coordinator",
        )
    return addresses, number or len(addresses) or None, coordinator


def _trainer(variables: Variables) -> Role:
    addresses, num_pservers, coordinator = _pservers(variables)
    if coordinator is None and variables.name_of(*COORDINATOR, *PSERVER_ADDRESSES) is None:
        variables.wrong(
            COORDINATOR[0],
            "is not set, so this trainer does not know the parameter servers; set it to `host:port` of "
            "parameter server 0, or list all of them in `PADDLE_PSERVERS_IP_PORT_LIST`",
        )
    num_trainers = variables.count(*TRAINERS, least=1)
    index = variables.count(*TRAINER_INDEX)
    _check_range(variables, TRAINER_INDEX, index, of=TRAINERS, number=num_trainers, what="trainers")
    return Role(
        kind="trainer",
        index=index,
        num_trainers=num_trainers,
        num_pservers=num_pservers,
        pservers=addresses,
        coordinator=coordinator,
        **_shared(variables),  # type: ignore[arg-type]
    )


def _server(variables: Variables) -> Role:
    addresses, num_pservers, coordinator = _pservers(variables)
    host, port = variables.text(*HOST), variables.port(*PORT)
    index = variables.count(*PSERVER_INDEX)
    _check_range(variables, PSERVER_INDEX, index, of=PSERVERS, number=num_pservers, what="parameter servers")
    address = None
    if addresses:
        index = _own_place(variables, addresses, host, port, index)
        address = addresses[index] if index is not None and index < len(addresses) else None
    else:
        # One that knows where it is, and of no others, is the only one.
        is_alone = num_pservers == 1 or (num_pservers is None and host is not None)
        if variables.name_of(*PSERVER_INDEX) is None and not is_alone:
            whom = "the" if num_pservers is None else f"each of the {num_pservers}"
            variables.wrong(PSERVER_INDEX[0], f"is not set; give {whom} parameter servers a number, from 0")
        index = index or 0
        if index > 0 and variables.name_of(*COORDINATOR, *PSERVER_ADDRESSES) is None:
            variables.wrong(
                COORDINATOR[0],
                f"is not set, so parameter server {index} does not know parameter server 0; "
                "set it to its `host:port`",
            )
        if host is not None:
            address = Address(host, _DEFAULT_PSERVER_PORT if port is None else port)
        elif variables.name_of(*HOST, *PSERVER_ADDRESSES) is None:
            variables.wrong(
                HOST[0],
                "is not set, so nobody would find this parameter server; set it to the address of this "
                "machine, or list all servers in `CLICKMILL_PSERVER_ADDRESSES`",
            )
    return Role(
        kind="pserver",
        index=index,
        num_trainers=variables.count(*TRAINERS, least=1),
        num_pservers=num_pservers,
        pservers=addresses,
        coordinator=coordinator,
        address=address,
        **_shared(variables),  # type: ignore[arg-type]
    )


def _own_place(
    variables: Variables,
    addresses: tuple[Address, ...],
    host: str | None,
    port: int | None,
    index: int | None,
) -> int | None:
    """Index of this server in the list: by its own address where that is known, else by its number.

    Launchers number pods by name and list addresses by IP, so that `PADDLE_PSERVER_ID` can point at the
    address of another server: the address decides. Our own `CLICKMILL_INDEX` has to agree with it.
    """
    listed = variables.name_of(*PSERVER_ADDRESSES) or ""
    if host is None:
        if index is None:
            variables.wrong(
                HOST[0],
                f"is not set; give the address in `{listed}` that is this server's, "
                "or `CLICKMILL_INDEX`, its place there",
            )
        return index
    own = [place for place, address in enumerate(addresses) if address.host == host]
    if not own:
        named = ", ".join(f"`{address}`" for address in addresses)
        variables.wrong(
            variables.name_of(*HOST) or "",
            f"says `{host}`, which is not among the addresses of `{listed}`: {named}",
        )
        return None
    if index not in own and variables.name_of("CLICKMILL_INDEX"):
        variables.wrong(
            "CLICKMILL_INDEX",
            f"says {index}, but `{host}` is number {' or '.join(map(str, own))} in `{listed}`",
        )
    if len(own) == 1:
        return own[0]
    if index in own:
        return index
    exact = [place for place in own if addresses[place].port == port]
    if not exact:
        variables.wrong(
            PSERVER_INDEX[0],
            f"is not set, and `{listed}` has {len(own)} addresses of `{host}`; "
            "set it, or `PADDLE_PORT`, to tell them apart",
        )
        return None
    return exact[0]


def _worker(variables: Variables, kind: Kind) -> Role:
    if kind == "pserver":
        variables.wrong(
            variables.name_of(*ROLE) or "",
            "is PSERVER, but a collective job has workers only; set it to WORKER",
        )
    port = variables.port(*PORT)
    workers = variables.addresses(*WORKER_ADDRESSES)
    if not workers:
        default = _DEFAULT_WORKER_PORT if port is None else port
        workers = variables.addresses(*WORKER_HOSTS, default_port=default)
    if variables.name_of(*WORKER_ADDRESSES, *WORKER_HOSTS) is None:
        variables.wrong(
            WORKER_ADDRESSES[0], "is not set; list the address of every worker, with commas between"
        )
    listed = variables.name_of(*WORKER_ADDRESSES, *WORKER_HOSTS) or ""
    number = variables.count(*TRAINERS, least=1)
    if workers and number is not None and number != len(workers):
        name = variables.name_of(*TRAINERS) or ""
        variables.wrong(name, f"says {number}, but `{listed}` names {len(workers)} addresses")
    index = variables.count(*TRAINER_INDEX)
    _check_range(variables, TRAINER_INDEX, index, of=(listed,), number=len(workers) or None, what="workers")
    own = variables.addresses(*WORKER_ADDRESS)
    address = own[0] if own else None
    if address is not None and workers and address not in workers:
        name = variables.name_of(*WORKER_ADDRESS) or ""
        variables.wrong(name, f"says `{address}`, which is not among the addresses of `{listed}`")
    elif address is not None and workers and index is not None and workers.index(address) != index:
        variables.wrong(
            variables.name_of(*TRAINER_INDEX) or "",
            f"says {index}, but `{address}` is number {workers.index(address)} in `{listed}`",
        )
    if address is None and index is None:
        variables.wrong(TRAINER_INDEX[0], "is not set; give every worker its number, from 0")
    if index is None and address in workers:
        index = workers.index(address)
    if address is None and index is not None and index < len(workers):
        address = workers[index]
    return Role(
        kind="trainer",
        index=index,
        num_trainers=len(workers) or None,
        address=address,
        workers=workers,
        **_shared(variables),  # type: ignore[arg-type]
    )


def _check_range(
    variables: Variables,
    names: tuple[str, ...],
    index: int | None,
    *,
    of: tuple[str, ...],
    number: int | None,
    what: str,
) -> None:
    if index is not None and number is not None and index >= number:
        origin = variables.name_of(*of) or variables.name_of(*PSERVER_ADDRESSES)
        variables.wrong(
            variables.name_of(*names) or "",
            f"says {index}, but there are {number} {what} by `{origin}`; numbers start at 0",
        )
