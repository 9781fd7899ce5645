/** Names of the schemas of bodies in the document. Without a name an object would be one more type at each place that has it. */
import * as z from 'zod';
import { eventData } from '../../core/follow/events.ts';
import { agent, secretKeyRef } from '../../core/resources/agent.ts';
import { decision } from '../../core/resources/approval.ts';
import { persistence, resourceRequirements, timeouts } from '../../core/resources/schema.ts';
import { sessionPhase, sessionSpec, sessionStatus } from '../../core/resources/session.ts';
import { turnPhase, turnSpec, turnStatus } from '../../core/resources/turn.ts';
import { problemSchema } from '../problems/problems.ts';
import * as bodies from './schemas.ts';

/** Schemas of requests. They refuse fields that they do not have. */
export const inputs = z.registry<{ id: string }>();
/** Schemas of answers. A field with a default is always there. */
export const outputs = z.registry<{ id: string }>();

const { env, files, jsonLines, secretFiles, server, shell, tools } = agent.shape;
const variable = env.unwrap().element;
const file = files.unwrap().element;
const { concurrencyGroup, environment, history, parent } = sessionSpec.shape;

/** Parts of specs, which requests and answers have. Only requests refuse unknown fields: there the name ends in `Create`. */
const parts = {
  AgentSettings: agent,
  EnvVar: variable,
  EnvVarSource: variable.shape.valueFrom.unwrap(),
  SecretFile: secretFiles.unwrap().element,
  SecretKeyRef: secretKeyRef,
  AgentFile: file,
  AgentFileItem: file.shape.items.unwrap().element,
  JsonLines: jsonLines.unwrap(),
  ServerSettings: server.unwrap(),
  ShellSettings: shell.unwrap(),
  Tool: tools.unwrap().element,
  Resources: resourceRequirements,
  ResourceAmounts: resourceRequirements.shape.requests.unwrap(),
  Timeouts: timeouts,
  Persistence: persistence,
  Workspace: persistence.shape.workspace.unwrap(),
  ConcurrencyGroup: concurrencyGroup.unwrap(),
  History: history.unwrap(),
  EnvironmentRef: environment.unwrap(),
  ParentRef: parent.unwrap(),
  RetryPolicy: turnSpec.shape.retry.unwrap(),
};

const requests = {
  SessionCreate: bodies.sessionCreate,
  SessionCreateMetadata: bodies.sessionCreate.shape.metadata.unwrap(),
  SessionCreateSpec: bodies.sessionCreate.shape.spec.unwrap(),
  TurnCreate: bodies.turnCreate,
  TurnCreateMetadata: bodies.turnCreate.shape.metadata.unwrap(),
  TurnCreateSpec: bodies.turnCreate.shape.spec.unwrap(),
  ApprovalCreate: bodies.approvalCreate,
  ApprovalCreateMetadata: bodies.approvalCreate.shape.metadata.unwrap(),
  ApprovalCreateSpec: bodies.approvalCreate.shape.spec,
  RunCreate: bodies.runCreate,
  RunCreateSpec: bodies.runCreate.shape.spec,
  Suspend: bodies.suspendBody.unwrap(),
  CommandCreate: bodies.commandCreate,
  CommandTerminal: bodies.commandCreate.shape.tty.unwrap(),
  CommandSignal: bodies.commandSignal,
};

const sessionState = bodies.session.shape.status.unwrap();
const { agentFiles, environment: sessionEnvironment, lastTurn, queue, startFailures, turns } = sessionStatus.shape;
const turnState = bodies.turn.shape.status.unwrap();
const { approval, artifacts, artifactsLeftOut, conditions, error, granted, log, usage } = turnStatus.shape;
const leftOut = artifactsLeftOut.unwrap().shape.entries.element;

const answers = {
  ObjectMeta: bodies.session.shape.metadata,
  Condition: conditions.unwrap().element,
  StateRef: sessionState.shape.state.unwrap(),
  Session: bodies.session,
  SessionList: bodies.sessionList,
  SessionSpec: bodies.session.shape.spec,
  SessionStatus: sessionState,
  SessionPhase: sessionPhase,
  TurnCounts: turns.unwrap(),
  LastTurn: lastTurn.unwrap(),
  SuspendHandled: sessionStatus.shape.suspendHandled.unwrap(),
  QueueStatus: queue.unwrap(),
  SlotHolder: queue.unwrap().shape.holders.unwrap().element,
  StartFailures: startFailures.unwrap(),
  AgentFilesStatus: agentFiles.unwrap().element,
  SessionEnvironment: sessionEnvironment.unwrap(),
  EnvironmentArchive: sessionEnvironment.unwrap().shape.archive,
  Turn: bodies.turn,
  TurnList: bodies.turnList,
  TurnSpec: bodies.turn.shape.spec,
  TurnStatus: turnState,
  TurnPhase: turnPhase,
  TurnError: error.unwrap(),
  TurnApproval: approval.unwrap(),
  TurnDecision: approval.unwrap().shape.decided.unwrap(),
  TurnLog: log.unwrap(),
  GrantedTimeouts: granted.unwrap(),
  Usage: usage.unwrap(),
  Artifact: bodies.artifactList.shape.items.element,
  ArtifactList: bodies.artifactList,
  StoredArtifact: artifacts.unwrap().element,
  ArtifactsLeftOut: artifactsLeftOut.unwrap(),
  LeftOutEntry: leftOut,
  LeftOutReason: leftOut.shape.reason,
  Approval: bodies.approval,
  ApprovalList: bodies.approvalList,
  ApprovalSpec: bodies.approval.shape.spec,
  Decision: decision,
  Run: bodies.run,
  Command: bodies.command,
  CommandExit: bodies.commandListed.shape.exit.unwrap(),
  CommandText: bodies.command.shape.stdout.unwrap(),
  CommandListed: bodies.commandListed,
  CommandList: bodies.commandList,
  CommandInputTaken: bodies.inputTaken,
  FileEntry: bodies.fileList.shape.items.element,
  FileList: bodies.fileList,
  FileProblem: bodies.fileProblem,
  PathEntry: bodies.pathEntry,
  FileWritten: bodies.fileWritten,
  Problem: problemSchema,
  FieldError: problemSchema.shape.errors.unwrap().element,
  ErrorCode: problemSchema.shape.code,
  SessionEventQueue: eventData.session.shape.queue.unwrap(),
  ApprovalEventDecision: eventData.approval.shape.decided.unwrap(),
};

/** Name of the schema of an event's data. */
export const eventSchemaName = (type: string) => `${type[0]?.toUpperCase()}${type.slice(1)}Event`;

for (const [id, schema] of Object.entries(parts)) {
  inputs.add(schema, { id: `${id}Create` });
  outputs.add(schema, { id });
}
for (const [id, schema] of Object.entries(requests)) inputs.add(schema, { id });
for (const [id, schema] of Object.entries(answers)) outputs.add(schema, { id });
for (const [type, schema] of Object.entries(eventData)) outputs.add(schema, { id: eventSchemaName(type) });
