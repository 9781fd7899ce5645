import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { ControlDecoder, type ControlEvent } from '../../../core/frames/control.ts';
import { ASK_READY, bindText, controlText, type Position } from '../../../core/frames/encode.ts';
import type { Bind, Control } from '../../../core/frames/messages.ts';
import { address, boot, cutPoints, down, fault, keys, split, spoil } from './support.ts';

const bind: Bind = {
  protocol: 1,
  session: { name: 's', namespace: 'ns', uid: address.session },
  incarnation: 3,
  keys: { up: keys.up.toString('base64'), down: keys.down.toString('base64') },
  state: { keyId: 'k', key: '' },
  agent: { driver: 'Command', command: ['a'], args: [], env: [], input: 'Stdin', result: 'Envelope' },
};

function collect(target: ControlDecoder, ...texts: (string | Buffer)[]): ControlEvent[] {
  const events: ControlEvent[] = [];
  for (const text of texts) target.push(Buffer.from(text as string), (event) => events.push(event));
  return events;
}

/** A decoder that is bound by the bind with epoch 5 and n 1. */
function bound(maxMessageBytes?: number): ControlDecoder {
  const target = new ControlDecoder({ boot, ...(maxMessageBytes && { maxMessageBytes }) });
  target.bound({ session: address.session, incarnation: 3, key: keys.down }, { epoch: 5, n: 1 });
  return target;
}

const line = (position: Position, channel = down) => [...controlText(channel, position, 'ping', {})].join('');
const restore = (position: Position, size: number) => [
  ...controlText(down, position, 'restore', { digest: 'd', keyId: 'k' }, Buffer.alloc(size, 9)),
];
const story = (events: ControlEvent[]) =>
  events.map((event) => {
    if (event.type === 'control') return `${event.control.kind} ${event.control.epoch}/${event.control.n}`;
    return event.type === 'stale' ? `stale ${event.epoch}/${event.n}` : event.type;
  });

interface SentControl {
  kind: 'ack' | 'restore' | 'turn';
  message: object;
  binary: Buffer;
}
const sentControl: fc.Arbitrary<SentControl> = fc.oneof(
  fc.nat().map<SentControl>((through) => ({ kind: 'ack', message: { through }, binary: Buffer.alloc(0) })),
  fc.constantFrom(1, 9_100, 30_000).map<SentControl>((size) => ({
    kind: 'restore',
    message: { digest: 'd', keyId: 'k' },
    binary: Buffer.alloc(size, 5),
  })),
  fc.string({ unit: 'binary', maxLength: 40 }).map<SentControl>((input) => ({
    kind: 'turn',
    message: { turn: 't', name: 't', index: 1, attempt: 1, input, timeoutMs: 1 },
    binary: Buffer.alloc(0),
  })),
);
const texts = (all: SentControl[]) =>
  all.map(({ kind, message, binary }, index) => [
    ...controlText(down, { epoch: 5, n: index + 2 }, kind, message as never, binary),
  ]);
const plainControl = ({ kind, message, binary }: SentControl | Control) => ({
  kind,
  message,
  binary: binary.toString('base64'),
});
const controls = (events: ControlEvent[]) =>
  events.flatMap((event) => (event.type === 'control' ? [event.control] : []));

const junkLine = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom('', '{', '{"v":1} ', ' ', 'x'.repeat(40_000), `${'{"v":1,'.repeat(10)}`, line({ epoch: 5, n: 1 })),
  )
  .map((text) => `${text.replaceAll('\n', '')}\n`);

describe('control lines, decoded', () => {
  test('any split of the stream with any junk lines between the messages yields exactly the sent messages', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(sentControl, junkLine), { maxLength: 6 }), cutPoints, (all, cuts) => {
        const pieces = texts(all.map(([message]) => message));
        const stream = pieces.map((lines, index) => lines.join('') + all[index]?.[1]).join('');
        const target = bound();
        const events = collect(target, ...split(Buffer.from(stream), cuts));
        assert.deepEqual(
          controls(events).map(plainControl),
          all.map(([message]) => plainControl(message)),
        );
      }),
      { numRuns: 300 },
    );
  });

  test('every decoded message was sent, in order and once, whatever is lost, repeated, reordered, torn or forged', () => {
    fc.assert(
      fc.property(fc.array(sentControl, { maxLength: 8 }), fc.array(fault), cutPoints, (all, faults, cuts) => {
        const stream = spoil(texts(all).flat(), faults).join('');
        const events = collect(bound(), ...split(Buffer.from(stream), cuts));
        let before = 1;
        for (const control of controls(events)) {
          assert.ok(control.n > before);
          before = control.n;
          assert.deepEqual(plainControl(control), plainControl(all[control.n - 2] as SentControl));
        }
      }),
      { numRuns: 500 },
    );
  });

  test('an empty line is told, also behind the torn rest of another writer’s line', () => {
    const target = new ControlDecoder({ boot });
    assert.deepEqual(story(collect(target, '\n')), ['empty']);
    assert.deepEqual(story(collect(target, line({ epoch: 5, n: 2 }).slice(0, 90), ASK_READY)), ['empty']);
  });

  test('a bind in clear is told whole however many parts it has, and again when it is repeated', () => {
    const large = { ...bind, agent: { ...bind.agent, args: ['x'.repeat(30_000)] } };
    const text = [...bindText(boot, { epoch: 5, n: 1 }, large)].join('');
    const events = collect(new ControlDecoder({ boot }), text, text);
    assert.deepEqual(story(events), ['bind 5/1', 'bind 5/1']);
    assert.deepEqual(controls(events)[0]?.message, large);
  });

  test('a bind for another boot of the pod has no effect', () => {
    const target = new ControlDecoder({ boot });
    assert.deepEqual(collect(target, [...bindText('c'.repeat(32), { epoch: 5, n: 1 }, bind)].join('')), []);
  });

  test('a bind after the first changes neither the epoch nor what is being received', () => {
    const target = bound();
    const [first, second, ...rest] = restore({ epoch: 5, n: 2 }, 20_000);
    const other = [...bindText(boot, { epoch: 900, n: 1 }, bind)].join('');
    const told = story(collect(target, first as string, other, second as string, ...rest));
    assert.deepEqual(told, ['bind 900/1', 'restore 5/2']);
    assert.equal(target.epoch, 5);
  });

  test('sealed lines before the bind have no effect', () => {
    const target = new ControlDecoder({ boot });
    assert.deepEqual(collect(target, line({ epoch: 5, n: 1 })), []);
  });

  test('an acceptance of the bind holds for the line that follows it in the same piece', () => {
    const target = new ControlDecoder({ boot });
    const told: string[] = [];
    target.push(
      Buffer.from([...bindText(boot, { epoch: 5, n: 1 }, bind)].join('') + line({ epoch: 5, n: 2 })),
      (event) => {
        told.push(...story([event]));
        if (event.type === 'control' && event.control.kind === 'bind') {
          target.bound({ session: address.session, incarnation: 3, key: keys.down }, event.control);
        }
      },
    );
    assert.deepEqual(told, ['bind 5/1', 'ping 5/2']);
  });

  test('a line of a lower epoch is told as stale, once for all of its parts', () => {
    const target = bound();
    const told = story(collect(target, line({ epoch: 6, n: 1 }), ...restore({ epoch: 5, n: 9 }, 30_000)));
    assert.deepEqual(told, ['ping 6/1', 'stale 5/9']);
  });

  test('a higher epoch starts its own count of n', () => {
    const told = story(collect(bound(), line({ epoch: 5, n: 50 }), line({ epoch: 6, n: 1 }), line({ epoch: 6, n: 2 })));
    assert.deepEqual(told, ['ping 5/50', 'ping 6/1', 'ping 6/2']);
  });

  test('the proof of the highest epoch is kept, and none of another', () => {
    const target = bound();
    const proofs: (string | undefined)[] = [];
    const take = (epoch: number, n: number, proof?: string) => {
      collect(target, ...controlText(down, { epoch, n, ...(proof && { proof }) }, 'ping', {}));
      proofs.push(target.proof);
    };
    take(5, 2);
    take(5, 3, 'of5');
    take(5, 4);
    take(4, 9, 'of4');
    take(6, 1);
    take(6, 2, 'of6');
    assert.deepEqual(proofs, [undefined, 'of5', 'of5', 'of5', undefined, 'of6']);
    const fresh = new ControlDecoder({ boot });
    fresh.bound({ session: address.session, incarnation: 3, key: keys.down }, { epoch: 5, n: 1, proof: 'ofBind' });
    assert.equal(fresh.proof, 'ofBind');
  });

  test('a line whose n does not grow within its epoch is a repeat without effect', () => {
    const target = bound();
    const told = story(collect(target, line({ epoch: 5, n: 4 }), line({ epoch: 5, n: 4 }), line({ epoch: 5, n: 3 })));
    assert.deepEqual(told, ['ping 5/4']);
  });

  test('the first part of a new leader’s message already deposes the old one', () => {
    const target = bound();
    const [first, ...rest] = restore({ epoch: 6, n: 1 }, 20_000);
    const told = story(collect(target, first as string, line({ epoch: 5, n: 9 }), ...rest));
    assert.deepEqual(told, ['stale 5/9', 'restore 6/1']);
  });

  test('a message whose parts were cut short can be written again', () => {
    const target = bound();
    const parts = restore({ epoch: 5, n: 2 }, 30_000);
    assert.deepEqual(collect(target, ...parts.slice(0, 2)), []);
    assert.deepEqual(story(collect(target, ...restore({ epoch: 5, n: 2 }, 30_000))), ['restore 5/2']);
  });

  test('a message in parts is whole after an earlier one whose parts were cut short', () => {
    const target = bound();
    const cut = restore({ epoch: 5, n: 2 }, 30_000).slice(0, 2);
    const told = story(collect(target, ...cut, ...restore({ epoch: 5, n: 3 }, 20_000)));
    assert.deepEqual(told, ['restore 5/3']);
  });

  test('a line that is sealed with another key, or under a changed header, has no effect', () => {
    const target = bound();
    const other = line({ epoch: 5, n: 2 }, { ...down, key: keys.up });
    assert.deepEqual(collect(target, other, line({ epoch: 5, n: 2 }).replace('"n":2', '"n":3')), []);
  });

  test('a line for another session or incarnation has no effect', () => {
    const target = bound();
    const lines = [{ session: 'other' }, { incarnation: 2 }].map((other) =>
      line({ epoch: 5, n: 2 }, { ...down, ...other }),
    );
    assert.deepEqual(collect(target, ...lines), []);
  });

  test('a sealed message that this version does not know is told as malformed', () => {
    const text = [...controlText(down, { epoch: 5, n: 2 }, 'dance' as 'ping', {})].join('');
    assert.deepEqual(collect(bound(), text), [{ type: 'malformed', n: 2, problem: 'there is no message "dance"' }]);
  });

  test('a message above the limit is never gathered', () => {
    const target = bound(20_000);
    assert.deepEqual(collect(target, ...restore({ epoch: 5, n: 2 }, 100_000)), []);
  });
});
