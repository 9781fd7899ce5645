import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import { aClass, aSession, aWorld } from '../../../support/world.ts';

type Given = NonNullable<SessionClassSpec['resources']>;

function settings(own: Given, ofClass: Partial<SessionClassSpec> = {}) {
  const overrides = ['agent.command', 'resources'] as SessionClassSpec['overrides'];
  const session = aSession({ spec: { resources: own } });
  return effective(session, aClass({ overrides, ...ofClass }), aWorld().installation);
}

function amounts(own: Given, ofClass: Partial<SessionClassSpec> = {}) {
  const found = settings(own, ofClass);
  assert.ok(!isProblem(found), JSON.stringify(found));
  return found.resources;
}

function refused(own: Given, ofClass: Partial<SessionClassSpec> = {}) {
  const found = settings(own, ofClass);
  assert.ok(isProblem(found));
  return [found.reason, found.message.replace(/;.*/, '')];
}

const CPU = 'spec.resources.requests.cpu: ';

describe('requests and limits of a pod', () => {
  test('a request above a limit that is not given beside it raises that limit', () => {
    const { requests, limits } = amounts({ requests: { cpu: '2' } });
    assert.deepEqual([requests.cpu, limits.cpu, requests.memory, limits.memory], ['2', '2', '128Mi', '1Gi']);
  });
  test('a limit below a request that is not given beside it lowers that request', () => {
    const { requests, limits } = amounts({ limits: { memory: '64Mi' } });
    assert.deepEqual([requests.memory, limits.memory, requests.cpu], ['64Mi', '64Mi', '50m']);
  });
  test('the class’s own amounts follow one another in the same way, and the session’s follow them', () => {
    const ofClass = { resources: { requests: { cpu: '3' }, limits: { memory: '100Mi' } } };
    assert.deepEqual(amounts({}, ofClass), {
      requests: { cpu: '3', memory: '100Mi', 'ephemeral-storage': '64Mi' },
      limits: { cpu: '3', memory: '100Mi', 'ephemeral-storage': '2Gi' },
    });
    assert.deepEqual(amounts({ limits: { cpu: '500m' } }, ofClass).requests.cpu, '500m');
  });
  test('amounts that fit stay as they are', () => {
    const { requests, limits } = amounts({ requests: { cpu: '1' }, limits: { memory: '128Mi' } });
    assert.deepEqual([requests.cpu, limits.cpu, requests.memory, limits.memory], ['1', '1', '128Mi', '128Mi']);
  });
  test('a request is not raised above what the class allows as a limit', () => {
    const maxResources = { limits: { cpu: '1500m' } };
    assert.deepEqual(refused({ requests: { cpu: '2' } }, { maxResources }), [
      'NotAllowed',
      `${CPU}2 is more than the 1500m that the class allows as a limit`,
    ]);
    assert.equal(amounts({ requests: { cpu: '1500m' } }, { maxResources }).limits.cpu, '1500m');
  });
  test('a request above the limit beside it is refused, with the field', () => {
    const given = { requests: { cpu: '2' }, limits: { cpu: '1' } };
    const message = `${CPU}2 is more than spec.resources.limits.cpu, which is 1`;
    assert.deepEqual(refused(given), ['InvalidSpec', message]);
    assert.deepEqual(refused({}, { resources: given }), ['ClassInvalid', message]);
  });
});
