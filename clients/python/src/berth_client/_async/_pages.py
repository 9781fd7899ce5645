from collections.abc import AsyncIterator, Mapping
from typing import Any

from .. import problems
from .._answer import Answer
from .._paths import query
from ._calls import AsyncCalls


async def pages(
    calls: AsyncCalls, path: str, filters: Mapping[str, str | None], deadline: float | None
) -> AsyncIterator[tuple[Answer, Any]]:
    """Iterates over the objects of a list, which come in the order of their names, each with its page.

    A list that has changed too much to be continued begins anew after the last name.
    """
    token: str | None = None
    last = ""
    while True:
        try:
            answer = await calls.get(path + query(**{"continue": token}, **filters), calls.deadline(deadline))
        except problems.ContinueExpired:
            token = None
            continue
        content = answer.json()
        for item in answer.read(lambda: list(content["items"])):
            name = answer.read(lambda: str(item["metadata"]["name"]))
            if name > last:
                yield answer, item
                last = name
        token = answer.read(lambda: content.get("continue"))
        if not token:
            return
