import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventExamples } from '../../../../api/openapi/event-examples.ts';
import { inWords } from '../../../../cli/follow/words.ts';
import { PrintablePieces, printable, printableName } from '../../../../cli/print/printable.ts';

describe('text of an agent on a terminal', () => {
  test('shows what would move the cursor, set the title or turn letters round', () => {
    assert.equal(printable('a\u001b[2Jb\u001b]0;title\u0007c'), 'a\\x1b[2Jb\\x1b]0;title\\x07c');
    assert.equal(printable('safe\rrm -rf'), 'safe\\x0drm -rf');
    assert.equal(printable('\u009b31m\u202egnp.exe'), '\\x9b31m\\u202egnp.exe');
    assert.equal(printable('tab\tand line\r\n'), 'tab\tand line\n');
  });

  test('shows a file name in one line, in which everything that is no letter of it is told apart', () => {
    assert.equal(printableName('a\nb\\x0a\r\u001b[31m\u202eé'), 'a\\x0ab\\\\x0a\\x0d\\x1b[31m\\u202eé');
  });

  test('keeps colours only where they are wanted, and ends them', () => {
    assert.equal(printable('\u001b[1;31mred\u001b[0m'), 'red');
    assert.equal(printable('\u001b[31mred', true), '\u001b[31mred\u001b[0m');
    assert.equal(printable('\u001b[31;2Jx', true), '\\x1b[31;2Jx');
  });

  test('keeps a colour that is cut between two pieces or goes on over several, and ends it after the last', () => {
    const pieces = new PrintablePieces();
    const shown = ['a\u001b', '[3', '1mred\r', '\nstill\u001b', 'c', '\u001b['].map((piece) => pieces.add(piece, true));
    assert.deepEqual(shown, ['a', '', '\u001b[31mred', '\nstill', '\\x1bc', '']);
    assert.equal(pieces.end(), '\\x1b[\u001b[0m');
    assert.equal(pieces.end(), '');
  });
});

describe('events in words', () => {
  test('say what happened in one line', () => {
    const words = Object.fromEntries(Object.entries(eventExamples).map(([type, { event }]) => [type, inWords(event)]));
    assert.deepEqual(words, {
      session:
        'session notes Queued, number 3 in the queue: AtCapacity: All 20 slots are taken; position 3 in the queue.',
      artifacts: 'turn notes-4 left report/index.html (5120 bytes); 1 left out',
      turn: 'turn notes-4 Succeeded after 5s',
      approval: 'turn notes-5 approved by jane',
      usage: 'turn notes-5 has run for 13 s, 3.1 s of CPU, 70 MiB',
      agent: 'notes-5: tool: search, query: berth',
      log: 'reading 12 files',
      dropped: '6 events of the agent were lost',
      deleted: 'turn notes-1 deleted',
    });
  });

  test('of an error say its code, and of what asks its question, both safe and in one line', () => {
    const base = { session: 'notes', turn: 'notes-1' };
    const error = { code: 'AgentFailed', message: 'exit 1\n\u001b[2J' };
    const failed = inWords({ type: 'turn', data: { ...base, uid: 'u', phase: 'Failed', error } });
    assert.equal(failed, 'turn notes-1 Failed: AgentFailed: exit 1 \\x1b[2J');
    const asks = { type: 'approval' as const, data: { ...base, requestId: 'r', prompt: 'May I\rdelete?', since: 's' } };
    assert.equal(inWords(asks), 'turn notes-1 asks: May I delete?');
    const agent = { type: 'agent' as const, data: { ...base, at: 't', event: { text: 'x'.repeat(1000) } } };
    assert.ok(inWords(agent).length < 500);
  });
});
