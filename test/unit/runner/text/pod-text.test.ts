import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { TurnLog } from '../../../../runner/text/log.ts';
import { PodText } from '../../../../runner/text/pod-text.ts';

const EVENT = '[berth event] {"seq":1}\n';

/** The text of a pod, and logs of its turns. */
function aPod() {
  let text = '';
  const podText = new PodText((piece) => {
    text += piece;
  });
  return { text: () => text, turn: () => new TurnLog(hiddenBy({}), podText) };
}
/** Has a turn print text, also what redaction holds back. */
const print = (turn: TurnLog, text: string, stream: 'stdout' | 'stderr' = 'stdout') => {
  turn[stream](Buffer.from(text));
  turn.flush();
};

describe('the readable text of a pod', () => {
  test('has the events of the runner, and those that somebody printed are broken, in the turn’s log too', () => {
    const pod = aPod();
    const turn = pod.turn();
    print(turn, 'one [berth ');
    print(turn, 'event] {"seq":9}\n', 'stderr');
    turn.event(EVENT);
    turn.lines('[berth event] {"seq":8}\n');
    const all = `one [berth event] \\{"seq":9}\n${EVENT}[berth event] \\{"seq":8}\n`;
    assert.equal(turn.close().text, all);
    assert.equal(pod.text(), all);
  });

  test('has no event that two turns have printed together', () => {
    const pod = aPod();
    const [first, second] = [pod.turn(), pod.turn()];
    first.close();
    // A background process of the first turn goes on.
    print(first, '[berth ev');
    print(second, 'ent] {"seq":9}\n');
    assert.equal(pod.text(), '[berth event] \\{"seq":9}\n');
    print(first, '<<<BERTH_');
    second.event(EVENT);
    print(first, 'END 1/1>>>');
    assert.equal(pod.text(), `[berth event] \\{"seq":9}\n<<<BERTH_\n${EVENT}END 1/1>>>`);
  });

  test('ends the last line of a turn with the turn, so that it is told, and the next begins on its own', () => {
    const pod = aPod();
    const first = pod.turn();
    print(first, 'no line feed');
    assert.deepEqual(
      first.close(),
      { text: 'no line feed', bytes: 12, truncated: false },
      'its log is as it was printed',
    );
    assert.equal(pod.text(), 'no line feed\n');
    const second = pod.turn();
    print(second, 'next\n');
    second.close();
    assert.equal(pod.text(), 'no line feed\nnext\n');
  });
});
