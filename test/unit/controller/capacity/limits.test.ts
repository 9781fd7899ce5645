import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { fullOf, type LimitSources, limitsOf } from '../../../../controller/capacity/limits.ts';
import { Tally } from '../../../../controller/capacity/tally.ts';
import { selects } from '../../../../core/resources/label-selector.ts';
import type { SessionClassSpec } from '../../../../core/resources/sessionclass.ts';

const SPACE = { namespace: 'team', class: 'small' };
const sources = (
  limits: SessionClassSpec['limits'],
  more: { maxRunning?: number; labels?: Record<string, string> | undefined; selected?: true } = {},
): LimitSources => ({
  maxRunning: more.maxRunning,
  class: (name) =>
    name === 'small' ? { spec: { limits, ...(more.selected ? { namespaceSelector: {} } : {}) } } : undefined,
  labels: () => ('labels' in more ? more.labels : { tier: 'gold', team: 'a' }),
});

describe('the limits of a session', () => {
  test('are those of the installation, of its class, and of its class in its namespace', () => {
    const found = limitsOf(
      sources({ maxRunning: 5, namespaces: [{ selector: {}, maxRunning: 2 }] }, { maxRunning: 9 }),
      SPACE,
    );
    assert.deepEqual(found, [
      { scope: 'Installation', slots: 9 },
      { scope: 'Class', slots: 5 },
      { scope: 'Namespace', slots: 2 },
    ]);
  });
  test('are the lowest where several entries select its namespace', () => {
    const gold = { matchLabels: { tier: 'gold' } };
    const namespaces = [
      { selector: gold, maxRunning: 7 },
      { selector: {}, maxRunning: 4 },
      { selector: { matchLabels: { tier: 'free' } }, maxRunning: 1 },
    ];
    assert.deepEqual(limitsOf(sources({ namespaces }), SPACE), [{ scope: 'Namespace', slots: 4 }]);
  });
  test('are not known when the class cannot be read, or the labels by which it limits or selects', () => {
    assert.equal(typeof limitsOf(sources({}), { namespace: 'team', class: 'other' }), 'string');
    const namespaces = [{ selector: {}, maxRunning: 1 }];
    assert.equal(typeof limitsOf(sources({ namespaces }, { labels: undefined }), SPACE), 'string');
    assert.equal(typeof limitsOf(sources({}, { labels: undefined, selected: true }), SPACE), 'string');
    assert.deepEqual(limitsOf(sources({}, { selected: true }), SPACE), []);
    assert.deepEqual(limitsOf(sources({}, { labels: undefined }), SPACE), [], 'labels that nobody asks for');
  });
  test('0 is a limit', () => {
    const limits = limitsOf(sources({}, { maxRunning: 0 }), SPACE);
    assert.ok(Array.isArray(limits));
    assert.deepEqual(fullOf(limits, SPACE, new Tally()), [{ scope: 'Installation', slots: 0 }]);
  });
  test('count a holder of unknown class for every class', () => {
    const limits = limitsOf(sources({ maxRunning: 1 }), SPACE);
    assert.ok(Array.isArray(limits));
    const tally = new Tally();
    tally.add({ namespace: 'team', class: 'other' });
    assert.deepEqual(fullOf(limits, SPACE, tally), []);
    tally.add({ namespace: 'elsewhere' });
    assert.deepEqual(fullOf(limits, SPACE, tally), [{ scope: 'Class', slots: 1 }]);
  });
});

test('selectors mean what they mean in Kubernetes', () => {
  const labels = { tier: 'gold', team: 'a' };
  const expression = (key: string, operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[]) => ({
    matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
  });
  const table: [Parameters<typeof selects>[0], boolean][] = [
    [{}, true],
    [{ matchLabels: { tier: 'gold', team: 'a' } }, true],
    [{ matchLabels: { tier: 'gold', team: 'b' } }, false],
    [{ matchLabels: { absent: '' } }, false],
    [expression('tier', 'In', ['silver', 'gold']), true],
    [expression('tier', 'In', ['silver']), false],
    [expression('absent', 'In', ['gold']), false],
    [expression('tier', 'NotIn', ['gold']), false],
    [expression('absent', 'NotIn', ['gold']), true],
    [expression('tier', 'Exists'), true],
    [expression('absent', 'Exists'), false],
    [expression('absent', 'DoesNotExist'), true],
    [expression('tier', 'DoesNotExist'), false],
    [{ matchLabels: { team: 'a' }, ...expression('tier', 'DoesNotExist') }, false],
  ];
  for (const [selector, expected] of table) assert.equal(selects(selector, labels), expected, JSON.stringify(selector));
});
