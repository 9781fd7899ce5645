import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { openApiDocument } from '../../../../api/openapi/openapi.ts';
import { noBody } from '../../../../api/openapi/schemas.ts';
import { PROBLEMS } from '../../../../api/problems/problems.ts';
import { routes } from '../../../../api/routes/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document
const document = openApiDocument() as any;

// biome-ignore lint/suspicious/noExplicitAny: an operation
function operation(id: string): any {
  const { method, path } = routes.find(({ operationId }) => operationId === id) ?? assert.fail(id);
  return document.paths[path][method.toLowerCase()];
}

// biome-ignore lint/suspicious/noExplicitAny: parameters
const parametersOf = (id: string): any[] => operation(id).parameters;

// biome-ignore lint/suspicious/noExplicitAny: an answer
function answerOf(id: string, status: string): any {
  const name = operation(id).responses[status].$ref?.replace('#/components/responses/', '');
  return document.components.responses[name];
}

/** Codes of the operation's problems by their status. */
function codesOf(id: string): Map<string, string[]> {
  const problems = Object.entries(operation(id).responses as Record<string, { $ref?: string }>).filter(
    ([status, { $ref }]) => $ref && status !== 'default',
  );
  return new Map(problems.map(([status]) => [status, answerOf(id, status)['x-problem-codes']]));
}

/** All schemas of the document, each with the path to it. */
const schemas = [...schemasIn(document.components.schemas, 'schemas'), ...schemasIn(document.paths, 'paths')];

// biome-ignore lint/suspicious/noExplicitAny: JSON
function* schemasIn(value: any, path: string): Generator<[schema: any, path: string]> {
  if (typeof value !== 'object' || value === null) return;
  if (typeof value.type === 'string') yield [value, path];
  for (const [key, part] of Object.entries(value)) yield* schemasIn(part, `${path}/${key}`);
}

describe('the OpenAPI document', () => {
  test('its version is the release', () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../../../package.json'), 'utf8'));
    assert.equal(document.info.version, version);
  });

  test('every reference leads somewhere', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, path]) => path as string);
    assert.ok(references.length > 10);
    for (const reference of new Set(references)) {
      const steps = reference.replace('#/', '').split('/');
      assert.ok(
        steps.reduce((value, step) => value?.[step], document),
        reference,
      );
    }
  });

  test('every route is in it with its parameters, and its operation has a name of its own', () => {
    const ids = new Set<string>();
    for (const { method, path, body, takesBytes, creates } of routes) {
      const operation = document.paths[path][method.toLowerCase()];
      ids.add(operation.operationId);
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = operation.parameters as { name: string; in: string }[];
      assert.deepEqual(
        parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
        inPath,
      );
      assert.equal(Boolean(operation.requestBody), Boolean((body && body !== noBody) || takesBytes));
      assert.equal(
        parameters.some(({ name }) => name === 'Idempotency-Key'),
        Boolean(creates),
      );
    }
    assert.equal(ids.size, routes.length);
  });

  test('has nothing that is meant for the Kubernetes API server', () => {
    assert.doesNotMatch(JSON.stringify(document), /x-kubernetes-|"nullable"/);
  });

  test('no schema has a default, or the bounds of JavaScript’s integers', () => {
    for (const [schema, path] of schemas) {
      assert.ok(!('default' in schema), path);
      for (const bound of [schema.minimum, schema.maximum]) {
        assert.ok(bound === undefined || Math.abs(bound) < Number.MAX_SAFE_INTEGER, path);
      }
    }
  });

  test('every object with fields has a name', () => {
    const named = new Set(Object.values(document.components.schemas));
    for (const [schema, path] of schemas) assert.ok(!schema.properties || named.has(schema), path);
  });

  test('a request refuses fields that it does not have, and an answer may have more', () => {
    const { AgentSettings, AgentSettingsCreate, SessionCreateSpec, SessionSpec } = document.components.schemas;
    assert.equal(SessionCreateSpec.properties.agent.$ref, '#/components/schemas/AgentSettingsCreate');
    assert.equal(SessionSpec.properties.agent.$ref, '#/components/schemas/AgentSettings');
    assert.equal(AgentSettingsCreate.additionalProperties, false);
    assert.equal(AgentSettings.additionalProperties, undefined);
  });

  test('the values of an answer’s enum may grow; those of a request are all that there are', () => {
    const { Condition, ErrorCode, TurnPhase, AgentSettings, AgentSettingsCreate } = document.components.schemas;
    assert.equal(TurnPhase.enum, undefined);
    assert.ok(TurnPhase['x-extensible-enum'].includes('AwaitingApproval'));
    assert.ok(ErrorCode['x-extensible-enum'].includes('NotFound'));
    assert.ok(AgentSettings.properties.driver['x-extensible-enum'].includes('Shell'));
    assert.ok(AgentSettingsCreate.properties.driver.enum.includes('Shell'));
    assert.deepEqual(Condition.properties.status.enum, ['True', 'False', 'Unknown']);
  });

  test('the codes of a turn’s error are listed, and may grow', () => {
    const { code } = document.components.schemas.TurnError.properties;
    assert.ok(code['x-extensible-enum'].includes('AgentFailed'));
    assert.ok(code['x-extensible-enum'].includes('PodLost'));
    assert.equal(code.type, 'string');
  });

  test('what a path has is an entry or a list, and an archive has trailers', () => {
    const { content, 'x-trailers': trailers } = operation('getFile').responses['200'];
    assert.deepEqual(content['application/json'].schema.oneOf, [
      { $ref: '#/components/schemas/FileList' },
      { $ref: '#/components/schemas/PathEntry' },
    ]);
    assert.ok(document.components.schemas.PathEntry.properties.version);
    assert.deepEqual(Object.keys(trailers), ['Repr-Digest', 'Berth-File-Problem-Count', 'Berth-File-Problems']);
  });

  test('a flag is a boolean, and a port a number', () => {
    const flags = parametersOf('followEvents').filter(({ name }) => name === 'logs');
    assert.deepEqual(flags[0].schema, { type: 'boolean' });
    const port = parametersOf('connectPort').find(({ name }) => name === 'port');
    assert.deepEqual(port.schema, { type: 'integer', minimum: 1, maximum: 65_535 });
    for (const [schema, path] of schemas) assert.ok(!schema.enum?.includes(''), path);
  });

  test('the content of a file is of bytes', () => {
    const { responses } = operation('getArtifact');
    for (const status of ['200', '206']) {
      assert.deepEqual(responses[status].content, {
        'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
      });
    }
  });

  test('a stream of events has a schema for each event, and takes the id of the last one', () => {
    const { SessionEventMessage, SessionStreamEvent, NamespaceStreamEvent } = document.components.schemas;
    const { data, event } = SessionEventMessage.properties;
    assert.equal(event.const, 'session');
    assert.equal(data.contentSchema.$ref, '#/components/schemas/SessionEvent');
    assert.equal(SessionStreamEvent.oneOf.length, 9);
    assert.equal(NamespaceStreamEvent.oneOf.length, 6);
    for (const id of ['followEvents', 'followNamespace']) {
      const { schema, itemSchema } = operation(id).responses['200'].content['text/event-stream'];
      assert.equal(schema.type, 'string');
      assert.match(itemSchema.$ref, /StreamEvent$/);
      const found = parametersOf(id).find(({ name }) => name === 'Last-Event-ID');
      assert.equal(found?.in, 'header');
    }
  });

  test('every code is that of an operation, but for the one that no operation can have', () => {
    const listed = new Set(routes.flatMap(({ operationId }) => [...codesOf(operationId).values()].flat()));
    const never = Object.keys(PROBLEMS).filter((code) => !listed.has(code));
    assert.deepEqual(never, ['MethodNotAllowed']);
  });

  test('an operation lists its codes by status', () => {
    const codes = codesOf('createTurn');
    assert.deepEqual(codes.get('401'), ['Unauthenticated']);
    assert.deepEqual(codes.get('409'), [
      'AlreadyExists',
      'Conflict',
      'Gone',
      'SessionTakesOneTurn',
      'SessionTerminating',
      'UIDMismatch',
    ]);
    assert.deepEqual(codesOf('listTurns').get('410'), ['ContinueExpired']);
    assert.equal(codesOf('getTurn').get('413'), undefined, 'its request has no body');
    assert.ok(codesOf('putFile').get('409')?.includes('NotReady'));
    for (const { operationId } of routes) {
      assert.deepEqual(operation(operationId).responses.default, { $ref: '#/components/responses/Problem' });
    }
  });

  test('answers list their headers', () => {
    const { responses } = operation('getArtifact');
    assert.deepEqual(Object.keys(responses['206'].headers), [
      'Berth-Version',
      'X-Request-Id',
      'ETag',
      'Repr-Digest',
      'Accept-Ranges',
      'Content-Disposition',
      'Content-Range',
    ]);
    assert.ok(operation('createSession').responses['201'].headers.Location);
    assert.ok(answerOf('getSession', '401').headers['WWW-Authenticate']);
    assert.ok(answerOf('getSession', '503').headers['Retry-After']);
  });

  test('every operation has a tag that the document lists', () => {
    const tags = document.tags.map(({ name }: { name: string }) => name);
    for (const { operationId } of routes) {
      const [tag, ...others] = operation(operationId).tags;
      assert.ok(tags.includes(tag), operationId);
      assert.deepEqual(others, []);
    }
  });

  test('the requester can be read and not be sent', () => {
    const { SessionSpec, SessionCreateSpec } = document.components.schemas;
    assert.ok(SessionSpec.properties.requester);
    assert.equal(SessionCreateSpec.properties.requester, undefined);
  });
});
