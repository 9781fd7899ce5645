/** Encoders of messages: frames up, control lines down. */
import type { Random } from '../runtime.ts';
import type { Bind, ControlMessages, Ready, SessionControlKind } from './messages.ts';
import { seal } from './seal.ts';
import { type Address, CLOSE, controlHeader, cut, END, frameHeader, packMessage, START } from './wire.ts';

/**
 * Sent at the start of every attach. The first line feed ends the torn rest of an earlier writer's line; the second is
 * the empty line that the runner answers with `ready`.
 */
export const ASK_READY = '\n\n';

/** Address of a sealed message and the key of its direction. */
export interface Channel extends Address {
  key: Buffer;
  random: Random;
}

/** Generates the text of a packed message's frame, one piece per part, as the caller asks for it. */
export function* frameText(channel: Channel, seq: number, kind: string, packed: Buffer): Generator<string> {
  const pieces = cut(packed);
  for (const [index, piece] of pieces.entries()) {
    const part = index + 1;
    const header = frameHeader({ ...channel, seq, kind, part, parts: pieces.length });
    const body = seal(channel.key, piece, Buffer.from(header), channel.random);
    yield frame(header, body, seq, part);
  }
}

/** Encodes `ready`, the only clear frame. */
export function readyText(ready: Ready): string {
  const address = { session: ready.session ?? '', incarnation: ready.incarnation ?? 0, boot: ready.boot };
  const header = frameHeader({ ...address, seq: 0, kind: 'ready', part: 1, parts: 1 });
  return frame(header, packMessage(ready), 0, 1);
}

function frame(header: string, body: Buffer, seq: number, part: number): string {
  return `${START}${header}${CLOSE}\n${body.toString('base64')}\n${END}${seq}/${part}${CLOSE}\n`;
}

/** A message's place in the order of control lines. */
export interface Position {
  epoch: number;
  n: number;
  /** Proof of the epoch, which the receiver keeps and shows: see `epochProof`. */
  proof?: string;
}

/**
 * Generates the lines of one control message, each with its line feed, as the caller asks for them. They must be
 * written one after the other: a line of another message in between makes the receiver discard the lines before it.
 */
export function* controlText<K extends SessionControlKind>(
  channel: Channel,
  position: Position,
  kind: K,
  message: ControlMessages[K],
  binary?: Buffer,
): Generator<string> {
  const pieces = cut(packMessage(message, binary));
  for (const [index, piece] of pieces.entries()) {
    const header = controlHeader({ ...channel, ...position, kind, part: index + 1, parts: pieces.length });
    yield `${header} ${seal(channel.key, piece, Buffer.from(header), channel.random).toString('base64')}\n`;
  }
}

/** Generates the lines of `bind`, the only clear message; `boot` is the nonce of the `ready` that it answers. */
export function* bindText(boot: string, position: Position, bind: Bind): Generator<string> {
  const address = { session: bind.session.uid, incarnation: bind.incarnation, boot };
  const pieces = cut(packMessage(bind));
  for (const [index, piece] of pieces.entries()) {
    const header = controlHeader({ ...address, ...position, kind: 'bind', part: index + 1, parts: pieces.length });
    yield `${header} ${piece.toString('base64')}\n`;
  }
}
