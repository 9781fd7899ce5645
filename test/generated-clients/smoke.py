"""Uses a client that openapi-python-client has made, as a user would. The test checks it strictly and what it prints."""

import json
import os

from berth_generated import AuthenticatedClient
from berth_generated.api.artifacts import get_artifact, list_artifacts
from berth_generated.api.runs import create_run
from berth_generated.api.sessions import create_session, delete_session, get_session, list_sessions, resume_session
from berth_generated.api.sessions import suspend_session
from berth_generated.models import AgentSettingsCreate, ArtifactList, Problem, Run, RunCreate, RunCreateSpec, Session
from berth_generated.models import SessionCreate, SessionCreateMetadata, SessionCreateSpec, SessionList, Suspend, Turn
from berth_generated.types import File

NAMESPACE = "default"


def main() -> None:
    client = AuthenticatedClient(base_url=os.environ["API"], token=os.environ["TOKEN"], timeout=None)
    asked = RunCreate(spec=RunCreateSpec(class_="echo", input_="hello"))
    assert asked.to_dict() == {"spec": {"class": "echo", "input": "hello"}}, "nothing is sent that was not given"
    run = create_run.sync(NAMESPACE, client=client, body=asked, wait="60s", idempotency_key="python")
    assert isinstance(run, Run), run
    assert isinstance(run.turn, Turn), run

    session, turn = run.session.metadata.name, run.turn.metadata.name
    artifacts = list_artifacts.sync(NAMESPACE, session, turn, client=client)
    assert isinstance(artifacts, ArtifactList), artifacts
    content = get_artifact.sync(NAMESPACE, session, turn, artifacts.items[0].name, client=client)
    assert isinstance(content, File), content

    wanted = SessionCreate(
        metadata=SessionCreateMetadata(name="by-python"),
        spec=SessionCreateSpec(class_="echo", agent=AgentSettingsCreate()),
    )
    created = create_session.sync(NAMESPACE, client=client, body=wanted)
    assert isinstance(created, Session), created
    name = created.metadata.name
    held = suspend_session.sync(NAMESPACE, name, client=client, body=Suspend(hold=True))
    assert isinstance(held, Session), held
    resumed = resume_session.sync(NAMESPACE, name, client=client)
    assert isinstance(resumed, Session), resumed
    listed = list_sessions.sync(NAMESPACE, client=client, limit=10)
    assert isinstance(listed, SessionList), listed
    refused = get_session.sync(NAMESPACE, "none", client=client)
    assert isinstance(refused, Problem), refused
    deleted = delete_session.sync_detailed(NAMESPACE, name, client=client)

    facts = {
        "phase": run.phase,
        "output": run.output,
        "artifact": content.payload.read().decode(),
        "suspend": held.spec.suspend,
        "listed": any(item.metadata.name == name for item in listed.items),
        "refused": refused.code,
        "deleted": deleted.status_code,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
