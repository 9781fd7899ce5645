import * as z from 'zod';
import { shownArtifact } from '../../core/artifacts/shown.ts';
import { ArtifactReader } from '../../core/artifacts/stored.ts';
import type { StoredTurn } from '../../core/resources/kinds.ts';
import { MAX_ARTIFACT_BYTES } from '../../core/resources/limits.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { fileAnswer } from '../answers/file-answer.ts';
import { notFinished, ownContent } from '../answers/results.ts';
import { artifactList, artifactParams, noQuery, turnParams } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Route, route } from '../route.ts';
import { turnOf } from './turns.ts';

const PATH = '/v1/namespaces/{namespace}/sessions/{session}/turns/{turn}/artifacts';

const headers = z.strictObject({
  Range: z.string().optional().describe('A part of the file, for example bytes=0-1023 or bytes=-500.'),
  'If-Range': z.string().optional().describe('An ETag: the part only of that content, otherwise the whole file.'),
  'If-None-Match': z.string().optional().describe('ETags of contents that the client has.'),
});

const FACTS = ['ETag', 'Repr-Digest', 'Accept-Ranges'] as const;

export const artifactRoutes: Route[] = [
  route({
    method: 'GET',
    path: PATH,
    operationId: 'listArtifacts',
    summary: 'List what a turn has left in BERTH_OUTPUT_DIR',
    rights: [{ verb: 'get', resource: 'turns', nameParam: 'turn' }],
    params: turnParams,
    query: noQuery,
    codes: ['TurnNotFinished'],
    responses: { 200: { description: 'The artifacts, without their contents.', schema: artifactList } },
    async handle({ params, signal }, services) {
      const { artifacts = [], artifactsLeftOut: leftOut } = ended(await turnOf(services, params, signal));
      return { status: 200, body: { items: artifacts.map(shownArtifact), ...(leftOut ? { leftOut } : {}) } };
    },
  }),
  route({
    method: 'GET',
    path: `${PATH}/{name}`,
    operationId: 'getArtifact',
    summary: 'The content of an artifact',
    description: 'With the headers ETag, Repr-Digest (sha-256) and Content-Type.',
    rights: [{ verb: 'get', resource: 'turns', nameParam: 'turn' }],
    params: artifactParams,
    query: noQuery,
    headers,
    codes: ['NoArtifact', 'TurnNotFinished', 'RangeNotSatisfiable', 'StoredDataMissing'],
    responses: {
      200: { description: 'The file.', schema: 'File', headers: [...FACTS, 'Content-Disposition'] },
      206: {
        description: 'The part of the file that Range asks for.',
        schema: 'File',
        headers: [...FACTS, 'Content-Disposition', 'Content-Range'],
      },
      304: { description: 'The client has the content: If-None-Match names its ETag.', headers: FACTS },
    },
    holds: () => 'contents',
    async handle({ params, headers, memory, signal }, services) {
      const { namespace, name } = params;
      const turn = await turnOf(services, params, signal);
      const { artifacts = [] } = ended(turn);
      const artifact = artifacts.find((one) => one.name === name);
      if (!artifact) {
        const text = `Turn "${turn.metadata.name}" has no artifact ${JSON.stringify(name)}. GET …/artifacts lists those it has.`;
        throw new Problem('NoArtifact', text);
      }
      ownContent(turn, artifact.ref);
      return fileAnswer(artifact, headers, async () => {
        // The artifacts of a turn are stored, and so read, as one content.
        const together = artifacts.filter(({ ref }) => ref === artifact.ref);
        const bytes = Math.min(MAX_ARTIFACT_BYTES, Math.max(...together.map((one) => one.offset + one.bytes)));
        memory.hold(bytes);
        const content = await new ArtifactReader(services.api, namespace, bytes).read(artifact, signal);
        memory.release(bytes - content.length);
        return content;
      });
    },
  }),
];

/** Returns the status of a turn that has ended; throws a Problem for one that has not. */
function ended(turn: StoredTurn): TurnStatus {
  const { status = {} } = turn;
  if (!isTerminal(status.phase)) throw notFinished(turn);
  return status;
}
