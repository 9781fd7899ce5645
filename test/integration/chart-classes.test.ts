import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { controllerConfig } from '../../controller/config.ts';
import { DEFAULT_RESOURCES } from '../../controller/settings/resources.ts';
import { parseConfig } from '../../core/program/config.ts';
import { sessionRefusal } from '../../core/resources/allowed.ts';
import { DEFAULT_TIMEOUTS } from '../../core/resources/defaults.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { isAbove } from '../../core/resources/quantity.ts';
import { type SessionClassSpec, sessionClassSpec } from '../../core/resources/sessionclass.ts';
import { type Any, find, render } from '../support/chart.ts';

const EXAMPLES = join(import.meta.dirname, '..', '..', 'examples');

describe('the classes of the chart', () => {
  let objects: Any[];
  let classes: Record<string, SessionClassSpec>;
  beforeAll(async () => {
    objects = await render();
    const made = objects.filter(({ kind }) => kind === 'SessionClass');
    classes = Object.fromEntries(made.map(({ metadata, spec }) => [metadata.name, sessionClassSpec.parse(spec)]));
  });

  test('leave slots of the installation to other namespaces where one namespace fills all of them', () => {
    const [{ env }] = find(objects, 'Deployment', 'berth-controller').spec.template.spec.containers;
    const installation = Number(env.find(({ name }: Any) => name === 'BERTH_MAX_RUNNING').value);
    const ofOneNamespace = Object.values(classes).flatMap(({ limits }) =>
      (limits?.namespaces ?? []).filter(({ selector }) => Object.keys(selector).length === 0),
    );
    assert.equal(ofOneNamespace.length, Object.keys(classes).length);
    const sum = ofOneNamespace.reduce((all, { maxRunning }) => all + maxRunning, 0);
    assert.ok(sum < installation, `${sum} of ${installation}`);
  });

  test('have ceilings of resources and timeouts that are not below what a session gets by default', () => {
    for (const [name, spec] of Object.entries(classes)) {
      for (const [timeout, byDefault] of Object.entries(DEFAULT_TIMEOUTS)) {
        const ceiling = spec.maxTimeouts?.[timeout as 'turn'];
        if (byDefault && ceiling) assert.ok(parseDuration(byDefault) <= parseDuration(ceiling), `${name} ${timeout}`);
      }
      for (const group of ['requests', 'limits'] as const) {
        for (const [resource, amount] of Object.entries({ ...DEFAULT_RESOURCES[group], ...spec.resources?.[group] })) {
          const ceiling = spec.maxResources?.[group]?.[resource as 'cpu'];
          assert.ok(ceiling && !isAbove(amount, ceiling), `${name} ${group} ${resource}`);
        }
      }
    }
  });

  test('refuse a session that asks for more than a node or a day, and say how much is allowed', () => {
    const spec = classes.default as SessionClassSpec;
    const refused = (own: object) => sessionRefusal(own, spec)?.message;
    assert.match(refused({ resources: { limits: { memory: '64Gi' } } }) ?? '', /64Gi is more than the 8Gi/);
    assert.match(refused({ timeouts: { turn: '48h' } }) ?? '', /48h is more than the 24h/);
    assert.equal(refused({ timeouts: { turn: '24h', lifetime: '9000h' } }), undefined);
  });

  test('allow every session of examples/', async () => {
    let checked = 0;
    for (const file of await readdir(EXAMPLES)) {
      if (!file.endsWith('.yaml')) continue;
      for (const document of parseAllDocuments(await readFile(join(EXAMPLES, file), 'utf8'))) {
        const { kind, spec } = document.toJS() ?? {};
        const allowed = classes[spec?.class ?? 'default'];
        if (kind !== 'Session' || !allowed) continue;
        assert.equal(sessionRefusal(spec, allowed), undefined, file);
        checked++;
      }
    }
    assert.ok(checked > 0);
  });
});

describe('quotas of the chart', () => {
  const quotas = [
    ...['quotas[0].namespace=a', 'quotas[0].sessions=5', 'quotas[0].storeBytes=5000000000'],
    ...['quotas[1].namespace=b', 'quotas[1].storeBytes=7', 'quotas[2].namespace=c', 'quotas[2].turns=9'],
  ];

  test('on objects are ResourceQuotas, and those on bytes are settings that the controller understands', async () => {
    const objects = await render(...quotas, 'controller.storeCeilingBytes=5000000000');
    const limits = objects.filter(({ kind }) => kind === 'ResourceQuota');
    assert.deepEqual(
      limits.map(({ metadata, spec }) => [metadata.namespace, spec.hard]),
      [
        ['a', { 'count/sessions.berth.dev': '5' }],
        ['c', { 'count/turns.berth.dev': '9' }],
      ],
    );
    const [{ env }] = find(objects, 'Deployment', 'berth-controller').spec.template.spec.containers;
    const settings = Object.fromEntries(env.map(({ name, value }: Any) => [name, value]));
    const { BERTH_STORE_QUOTAS } = parseConfig(controllerConfig, settings);
    assert.deepEqual(
      [...BERTH_STORE_QUOTAS],
      [
        ['a', 5_000_000_000],
        ['b', 7],
      ],
    );
  });
});
