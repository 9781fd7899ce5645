from urllib.parse import quote, urlencode


def path(*parts: str) -> str:
    """Returns the path of a page; a slash in a part is no separator."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def query(**values: str | float | bool | None) -> str:
    """Returns the query without what is None; empty without any."""
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in values.items()
        if value is not None
    }
    return "?" + urlencode(given) if given else ""
