import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { openApiDocument } from '../../../../api/openapi/openapi.ts';
import { routes } from '../../../../api/routes/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document
const document = openApiDocument() as any;

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
      assert.equal(Boolean(operation.requestBody), Boolean(body || takesBytes));
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

  test('the requester can be read and not be sent', () => {
    const { Session, SessionCreate } = document.components.schemas;
    assert.ok(Session.properties.spec.properties.requester);
    assert.equal(SessionCreate.properties.spec.properties.requester, undefined);
  });
});
