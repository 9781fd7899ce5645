/**
 * Program of an image of a hostile user: `node main.ts ATTACK`. It is bound like a runner, so it has the keys of its pod, and then prints
 * what the attack says. It answers pings, so that the controller goes on to read it, and obeys nothing else.
 */
import { randomBytes } from 'node:crypto';
import { write, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { ControlDecoder } from '../../../core/frames/control.ts';
import { frameText, readyText } from '../../../core/frames/encode.ts';
import type { Bind, Control, Ready } from '../../../core/frames/messages.ts';
import { packMessage } from '../../../core/frames/wire.ts';
import { systemRandom } from '../../../core/system.ts';
import { ATTACKS, type Attack, type AttackName, type Bound } from './attacks.ts';

const STDOUT = 1;
const STDERR = 2;

const attack: Attack = ATTACKS[process.argv[2] as AttackName];
const boot = randomBytes(16).toString('hex');
const decoder = new ControlDecoder({ boot });
const ready: Ready = {
  boot,
  protocol: 3,
  runnerVersion: '1',
  podUID: process.env.BERTH_POD_UID ?? '',
  lastSeq: 0,
  epoch: 0,
};
/** Texts that go before the next one of the attack. */
let answers = '';
let isFlooding = false;
let seq = 0;
let frame: Bound['frame'] | undefined;

const skip = () => {
  seq += 1;
};
const written = promisify(write);

async function print(fd: number, text: string | Buffer): Promise<void> {
  const bytes = Buffer.from(text as string);
  for (let at = 0; at < bytes.length; ) at += (await written(fd, bytes, at)).bytesWritten;
}

/** Prints what is to be answered; a flood does so itself, between its texts. */
function answer(text: string): void {
  if (isFlooding) answers += text;
  else writeSync(STDOUT, text);
}

async function flood(texts: Iterable<string | Buffer>): Promise<void> {
  isFlooding = true;
  for (const text of texts) {
    const before = answers;
    answers = '';
    await print(STDOUT, before);
    await print(STDOUT, text);
  }
}

async function begin({ session, incarnation, keys }: Bind): Promise<void> {
  const key = Buffer.from(keys.up, 'base64');
  const channel = { session: session.uid, incarnation, boot, key, random: systemRandom };
  Object.assign(ready, { session: session.uid, incarnation });
  const make = (kind: string, message: object, binary?: Buffer) => [
    ...frameText(channel, ++seq, kind, packMessage(message, binary)),
  ];
  const bound = { runnerVersion: '1', protocol: 3, containment: 'ProcessGroup', hardened: false };
  answer(make('bound', bound).join(''));
  frame = make;
  const parts: Bound = { ready, frame: make, skip };
  if (attack === 'Mute' || 'fromStart' in attack) return;
  if ('log' in attack) {
    for (const text of attack.log(parts)) await print(STDERR, text);
    process.kill(process.pid, 'SIGKILL');
    return;
  }
  await flood(attack.print(parts));
}

function obey(control: Control): void {
  if (control.kind === 'bind' && !frame) {
    const { message, epoch, n } = control;
    decoder.bound(
      { session: message.session.uid, incarnation: message.incarnation, key: Buffer.from(message.keys.down, 'base64') },
      { epoch, n },
    );
    ready.epoch = epoch;
    void begin(message);
  } else if (control.kind === 'ping' && frame) {
    const pong = { n: control.n, incarnation: ready.incarnation, idleMs: 0, suspended: false };
    if (attack !== 'Mute') answer(frame('pong', pong).join(''));
  }
}

process.stdin.on('data', (chunk: Buffer) => {
  decoder.push(chunk, (event) => {
    if (event.type === 'empty' && !(attack === 'Mute' && frame)) answer(readyText({ ...ready, lastSeq: seq }));
    else if (event.type === 'control') obey(event.control);
  });
});
process.stdin.on('end', () => {});
if (typeof attack === 'object' && 'fromStart' in attack) {
  const { fromStart } = attack;
  void flood({
    *[Symbol.iterator]() {
      for (;;) yield fromStart;
    },
  });
}
