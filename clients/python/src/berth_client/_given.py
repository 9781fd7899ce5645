from collections.abc import Mapping
from typing import Any, Final


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""Default of an argument whose None is a value: the JSON null."""


def body(
    spec: Mapping[str, Any] | None,
    fields: dict[str, Any],
    name: str | None,
    labels: dict[str, str] | None,
    annotations: dict[str, str] | None,
) -> dict[str, Any]:
    """Returns the body of a create. Raises ValueError for a field that is given twice."""
    whole = dict(spec or {})
    for key, value in fields.items():
        if value is ABSENT:
            continue
        if key in whole:
            raise ValueError(f"{key} is given as an argument and in spec; leave one of them out")
        whole[key] = value
    given = {"name": name, "labels": labels, "annotations": annotations}
    metadata = {key: value for key, value in given.items() if value is not None}
    return {"metadata": metadata, "spec": whole} if metadata else {"spec": whole}
