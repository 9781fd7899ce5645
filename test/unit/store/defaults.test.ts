import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { parse } from 'yaml';
import { controllerConfig } from '../../../controller/config.ts';
import { retention } from '../../../controller/settings/retention.ts';
import { MAX_ARTIFACT_BYTES, MAX_ENVIRONMENT_BYTES, MAX_STATE_BYTES } from '../../../core/resources/limits.ts';
import { fitsShare, type Holding, shareOf } from '../../../core/store/share.ts';
import { aWorld } from '../../support/world.ts';

const { BERTH_STORE_CEILING_BYTES: ceilingBytes, BERTH_STORE_SHARE_FACTOR: factor } = controllerConfig.parse({
  BERTH_RUNNER_IMAGE: 'runner',
});
const rule = { ceilingBytes, factor };
const nothing: Holding = { states: 0, history: 0 };
const base64 = (bytes: number) => Math.ceil(bytes / 3) * 4;

test('the chart has the defaults of the controller', () => {
  const chart = join(import.meta.dirname, '..', '..', '..', 'charts', 'berth', 'values.yaml');
  const { controller } = parse(readFileSync(chart, 'utf8'));
  assert.deepEqual([controller.storeCeilingBytes, controller.storeShareFactor], [ceilingBytes, factor]);
});

test('by default a namespace has room for the largest state and its successor, environment and artifacts', () => {
  const state = base64(MAX_STATE_BYTES);
  assert.ok(fitsShare(rule, { ...nothing, states: state }, 0, { as: 'State', bytes: state }));
  assert.ok(fitsShare(rule, nothing, 0, { as: 'State', bytes: base64(MAX_ENVIRONMENT_BYTES) }));
  assert.ok(fitsShare(rule, { ...nothing, states: state }, 0, { as: 'History', bytes: base64(MAX_ARTIFACT_BYTES) }));
});

test('by default a namespace that holds nothing has room for the largest state beside one that has used its share', () => {
  const other = shareOf(rule, 0);
  assert.ok(fitsShare(rule, nothing, other, { as: 'State', bytes: base64(MAX_STATE_BYTES) }));
});

test('by default the history of several sessions fits the share of a namespace, so that a limit of the session is met first', () => {
  const { session, class: sessionClass } = aWorld();
  const { stored } = retention(session, sessionClass).history;
  assert.ok(fitsShare(rule, nothing, 0, { as: 'History', bytes: 4 * base64(stored) }));
});
