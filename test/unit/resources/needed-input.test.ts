import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Agent } from '../../../core/resources/agent.ts';
import { mergedAgent } from '../../../core/resources/merged-agent.ts';
import { isNoInput, neededInput } from '../../../core/resources/needed-input.ts';

describe('an input is needed by', () => {
  const cases: [what: string, own: Agent, defaults: Agent, needed: RegExp | undefined][] = [
    ['the driver Shell', { driver: 'Shell' }, {}, /^the driver Shell needs an object with a "command"$/],
    ['the driver Shell of the class', {}, { driver: 'Shell' }, /Shell/],
    ['the driver Tools', { driver: 'Tools' }, {}, /^the driver Tools needs an object with "tool", /],
    ['a program that gets it as text', { input: 'Text' }, {}, /^agent.input Text needs a string$/],
    [
      'a program that gets it in its arguments',
      {},
      { input: 'Args' },
      /^agent.input Args needs a value for \$\(INPUT\)$/,
    ],
    ['no program that gets a request', {}, {}, undefined],
    ['no program that gets a request in a file', { input: 'File' }, { input: 'Text' }, undefined],
    ['no server', {}, { driver: 'Server', input: 'Text' }, undefined],
    [
      'no server of a session, whatever its class’s own driver needs',
      { driver: 'Server' },
      { input: 'Text' },
      undefined,
    ],
  ];
  for (const [what, own, defaults, needed] of cases) {
    test(what, () => {
      const found = neededInput(mergedAgent(own, defaults));
      if (needed) assert.match(found ?? '', needed);
      else assert.equal(found, undefined);
    });
  }
});

test('null is no input, every other value is one', () => {
  assert.deepEqual([undefined, null, '', 0, false, {}, []].map(isNoInput), [
    true,
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
});
