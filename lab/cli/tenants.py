"""Commands about tenants."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lab.cli.output import line, print_json, print_table
from lab.cli.server import Json
from lab.progress import say


def add(
    tenant: str,
    *,
    role: Annotated[str | None, Parameter(help="an existing role with LOGIN; default: a new one, lab_TENANT, whose password is printed once")] = None,
    json: Json = False,
) -> int:
    """Give a tenant its login: a role that finds the documents ingested with `--tenant TENANT` and those of `--tenant shared`, and nothing else.

    Parameters
    ----------
    tenant
        The name that stands behind --tenant at ingest.
    """
    from lab.store import tenants
    from lab.store.connect import connect

    with connect() as store:
        name, password = tenants.add(store, tenant, role)
        address = store.address(name, password or "")
    if json:
        print_json({"schema_version": 1, "tenant": tenant, "role": name, "password": password, "url": address if password else None})
    else:
        line(f"tenant {tenant} logs in as {name}" + (f" with password {password}" if password else ""))
        if password:
            say(f"LAB_DATABASE_URL={address} lets `lab search` find the tenant's documents; the password is kept nowhere else")
    return 0


def list_tenants(*, json: Json = False) -> int:
    """The tenants, their logins and the collections that hold documents of them."""
    from lab.store import tenants
    from lab.store.connect import connect

    with connect() as store:
        found = tenants.all_tenants(store)
    if json:
        rows = [{"tenant": t.name, "role": t.role, "collections": list(t.collections)} for t in found]
        print_json({"schema_version": 1, "tenants": rows})
    elif found:
        print_table(("tenant", "login", "collections"), [(t.name, t.role or "–", ", ".join(t.collections) or "–") for t in found])
    else:
        line("no tenant yet: `lab ingest FOLDER -c NAME --tenant TENANT` stores documents of one, `lab tenant add TENANT` makes its login")
    return 0


def remove(tenant: str) -> int:
    """Take a tenant's login away. Its documents stay; the owner sees them as before.

    Parameters
    ----------
    tenant
        The tenant's name.
    """
    from lab.store import tenants
    from lab.store.connect import connect

    with connect() as store:
        role, left = tenants.remove(store, tenant)
    line(f"{role} is no tenant's login any more" + (f"; the role is still there: {left}" if left else ""))
    return 0
